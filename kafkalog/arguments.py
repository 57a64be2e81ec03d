"""Keyword arguments of what is public: one that a function does not have is an error that names
those that are like it. Rule: docs/python.md F1420."""

from __future__ import annotations

from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, TypeVar, cast

from kafkalog.errors import refuse_unknown_arguments

_Public = TypeVar("_Public")
_Class = TypeVar("_Class", bound=type)


def with_known_arguments(public: _Public, module: str) -> _Public:
    """Return a function, as a name of `module`, that raises UnknownArgumentError for a keyword
    argument that it does not have. All else is returned as it is: also functions without options,
    which are called for each record, and those that take any keyword, which check it
    themselves."""
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
            refuse_unknown_arguments(given, known - {"self"})
        return public(*args, **given)

    # pickle looks there for what it names.
    called.__module__ = module
    return cast(_Public, called)


def known_arguments(made: _Class) -> _Class:
    """Have the constructor and the methods of a class refuse arguments in the same way."""
    for name, method in list(vars(made).items()):
        if name == "__init__" or not name.startswith("_"):
            setattr(made, name, with_known_arguments(method, made.__module__))
    return made


def _is_option(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.KEYWORD_ONLY or parameter.default is not Parameter.empty
