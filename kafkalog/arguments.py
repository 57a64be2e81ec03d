"""Keyword arguments of public functions: one that a function does not have is an error that names
those that are like it. Rule: docs/python.md F1420."""

from __future__ import annotations

from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, TypeVar, cast

from kafkalog.errors import refuse_unknown_arguments

_Public = TypeVar("_Public")


def with_known_arguments(public: _Public, module: str) -> _Public:
    """Return a function, as a name of `module`, that raises UnknownArgumentError for a keyword
    argument that it does not have. Give a class such methods. All else is returned as it is: also
    functions without options, which are called for each record, and those that take any keyword,
    which check it themselves."""
    if isinstance(public, type):
        for name, method in list(vars(public).items()):
            if isinstance(method, FunctionType) and (name == "__init__" or name[0] != "_"):
                setattr(public, name, with_known_arguments(method, method.__module__))
        return public
    if not isinstance(public, FunctionType):
        return public
    parameters = signature(public).parameters.values()
    takes_any = any(each.kind is Parameter.VAR_KEYWORD for each in parameters)
    if takes_any or not any(map(_is_option, parameters)):
        return cast(_Public, public)
    known = {each.name for each in parameters}

    @wraps(public)
    def called(*args: Any, **given: Any) -> Any:
        if not given.keys() <= known:
            refuse_unknown_arguments(given, known)
        return public(*args, **given)

    # pickle looks there for what it names.
    called.__module__ = module
    return cast(_Public, called)


def _is_option(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.KEYWORD_ONLY or parameter.default is not Parameter.empty
