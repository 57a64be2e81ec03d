"""A wrong keyword argument of any public function is named with what was meant. Rule: F1420
(docs/python.md)."""

import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import kafkalog
import kafkalog.testing
import kafkalog.zookeeper
from kafkalog.errors import OptionError, UnknownArgumentError

# What functions that take any keyword need before it, and one of the keywords.
ANY = {
    "export": ((None, "logs"), "until_time"),
    "read": ((None, "logs"), "isolation_level"),
    "scan": (("logs",), "isolation_level"),
    "sql": (("logs",), "isolation_level"),
    "write": ((None, "logs"), "segment_bytes"),
}


def public() -> Iterator[tuple[str, Any]]:
    for module in (kafkalog, kafkalog.testing, kafkalog.zookeeper):
        for name in module.__all__:
            yield f"{module.__name__}.{name}", getattr(module, name)


def calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions, constructors, and methods."""
    for name, found in public():
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found) and not issubclass(found, (Exception, tuple, Enum)):
            yield name, found
            methods = inspect.getmembers(found, inspect.isfunction)
            yield from ((f"{name}.{each}", method) for each, method in methods if each[0] != "_")


def option(call: Callable[..., Any]) -> str | None:
    """One of the options, the parameters with a default or without a place; None without any."""
    parameters = inspect.signature(call).parameters.values()
    return next(
        (
            each.name
            for each in parameters
            if each.kind is each.KEYWORD_ONLY or each.default is not each.empty
        ),
        None,
    )


CALLS = [
    (name, call, option(call))
    for name, call in calls()
    if name.rpartition(".")[2] not in ANY and option(call) is not None
]


@pytest.mark.parametrize(("name", "call", "meant"), CALLS, ids=[name for name, _, _ in CALLS])
def test_an_option_that_is_misspelt_is_named_with_what_was_meant(
    name: str, call: Callable[..., Any], meant: str
) -> None:
    wrong = meant[:-1] + 2 * meant[-1]
    with pytest.raises(UnknownArgumentError) as raised:
        call(**{wrong: None})
    said = f"{wrong}: there is no such argument: did you mean {meant}"
    assert str(raised.value).startswith(said)
    assert isinstance(raised.value, TypeError) and isinstance(raised.value, OptionError)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize("name", ANY)
def test_so_is_one_of_a_function_that_takes_any(name: str) -> None:
    given, meant = ANY[name]
    wrong = meant[:-1] + 2 * meant[-1]
    with pytest.raises(UnknownArgumentError, match=f"argument: did you mean .*{meant}"):
        getattr(kafkalog, name)(*given, **{wrong: "1"})


def test_so_is_one_of_a_method_of_what_a_function_returns(tmp_path: Path) -> None:
    program = """
import sys
import kafkalog

try:
    kafkalog.scan(sys.argv[1]).to_reader(colums=[])
except TypeError as error:
    print(error)
"""
    directory = kafkalog.testing.LogDirectory(tmp_path / "logs")
    directory.topic("orders").records([("a", "1")])
    arguments = [sys.executable, "-c", program, directory.write()]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    said = "colums: there is no such argument: did you mean columns? There are columns, filter\n"
    assert (done.stdout, done.stderr) == (said, "")


def test_some_of_those_that_people_call_are_among_them() -> None:
    names = {name for name, _, _ in CALLS}
    functions = {"consumer_lag", "lag_history", "serve", "find_partitions", "with_lag"}
    classes = {"LogReader", "LogWriter", "InputFile", "Scan.to_reader", "testing.Topic.records"}
    assert {f"kafkalog.{each}" for each in functions | classes} <= names


@pytest.mark.parametrize("name", sorted(kafkalog.__all__))
def test_public_functions_are_pickled_by_their_names(name: str) -> None:
    found = getattr(kafkalog, name)
    assert pickle.loads(pickle.dumps(found)) is found
