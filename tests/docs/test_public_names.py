"""What users need is imported from three modules, and documents show no more."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from inspect import getdoc
from pathlib import Path

import pytest

import kafkalog
import kafkalog.testing
import kafkalog.zookeeper
from tests.support.repository import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
# These are about the source code itself.
OF_THE_SOURCE = ("architecture.md", "decisions/")
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
PROGRAMS = sorted(ROOT.glob("examples/**/*.py"))
PYTHON_BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# A module in a sentence; what is started as a module, or named in a setting, is not imported.
DEEP_NAME = re.compile(r"(?<!-m )(?<!module=)\bkafkalog\.(?!testing\b)[a-z_]+\.[A-Za-z_.]+\w")


def python_in(path: Path) -> Iterator[str]:
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        yield from ("".join(cell["source"]) for cell in cells)
    elif path.suffix == ".md":
        yield from PYTHON_BLOCK.findall(text)
    else:
        yield text


def imported_modules(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS, *PROGRAMS], ids=relative)
def test_only_public_modules_are_imported(path: Path) -> None:
    modules = {name for source in python_in(path) for name in imported_modules(source)}
    ours = {name for name in modules if name.split(".")[0] == "kafkalog"}
    assert ours <= {"kafkalog", "kafkalog.testing", "kafkalog.zookeeper"}


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=relative)
def test_no_text_names_a_deeper_module(path: Path) -> None:
    if not any(part in relative(path) for part in OF_THE_SOURCE):
        assert DEEP_NAME.findall(path.read_text()) == []


@pytest.mark.parametrize(
    "module", [kafkalog, kafkalog.testing, kafkalog.zookeeper], ids=lambda module: module.__name__
)
def test_every_public_name_is_there_and_says_what_it_is(module: object) -> None:
    names = vars(module)["__all__"]
    assert [name for name in names if not getdoc(getattr(module, name))] == []
    assert set(names) <= set(dir(module))


def test_what_a_shell_lists_is_public_and_the_docstring_groups_it() -> None:
    listed = {name for name in dir(kafkalog) if not name.startswith("_")}
    assert listed == set(kafkalog.__all__)
    groups = (kafkalog.__doc__ or "").split("\n\n")[2]
    named = set(re.findall(r"\w+", groups))
    # Errors, and functions beside the two classes of fetches, are named by what they begin with.
    others = {name for name in listed if re.search(r"Error$|_send$", name)}
    assert listed - others <= named


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'with_lags'"):
        vars(kafkalog)["__getattr__"]("with_lags")
    code = [sys.executable, "-c", "import kafkalog; kafkalog.with_lags"]
    said = subprocess.run(code, capture_output=True, text=True, check=False).stderr
    assert "Did you mean: 'with_lag'?" in said


def test_to_import_kafkalog_imports_nothing_large() -> None:
    large = ("pyspark", "pyarrow", "numpy", "numba", "pandas")
    code = f"import sys, kafkalog; print([name for name in {large} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
