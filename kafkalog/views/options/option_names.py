"""Errors about options of the source, in the names that a command, a job or Python has for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import click

from kafkalog.words import in_a_line

# Where the name is not the source's with dashes: those that commands and jobs have for it.
_OTHER_NAMES = {
    "endingOffsets": ("--as-of-offset", "--offsets"),
    "endingTimestamp": ("--as-of", "--until-time"),
    "fromTimestamp": ("--from-time",),
    "path": ("PATH",),
    "paths": ("PATH",),
    "startingOffsets": ("--offsets",),
    "startingTimestamp": ("--from-time",),
    "subscribe": ("--topic",),
    "subscribePattern": ("--topic-pattern",),
    "untilTimestamp": ("--until-time",),
}
# What people try first.
_TRIED = {
    "--after": "--from-time",
    "--at": "--as-of",
    "--before": "--until-time",
    "--since": "--from-time",
}
_ERROR = re.compile(
    r"(?s)(?P<names>.+?): (?P<found>missing|.* is not valid), expected (?P<expected>.*)"
)
_WORD = re.compile(r"\w+")
# Where a parameter's name is not the option's with underscores.
_PARAMETERS = {"--output-dir": "output", "--topic": "topics", "PATH": "log_dirs"}
_CAMEL_CASE = re.compile(r"\b[a-z]+(?:[A-Z][a-z]+)+\b")
_WITH_DASHES = re.compile(r"(?<![\w/-])--[a-z][a-z-]*[a-z]")


def named_as_given(message: str, command: click.Command) -> str:
    """Return the message of an OptionError with the command's names of the options. Options that
    the command does not have keep the source's names."""
    own = {name for each in command.params for name in each.opts}
    if any(isinstance(each, click.Argument) for each in command.params):
        own.add("PATH")

    return _renamed(
        message, lambda name: next((each for each in _given_names(name) if each in own), name)
    )


def named_as_parameters(message: str, parameters: Collection[str]) -> str:
    """Return the message of an error with the names that options have as `parameters` of a Python
    function. Options that it does not have keep their names."""

    def parameter(option: str) -> str:
        name = _PARAMETERS.get(option, option.removeprefix("--").replace("-", "_"))
        return name if name in parameters else option

    def given(name: str) -> str:
        names = map(parameter, _given_names(name))
        return next((each for each in names if each in parameters), name)

    renamed = _renamed(message, given)
    return _WITH_DASHES.sub(lambda option: parameter(option[0]), renamed)


def usage_error_text(error: click.UsageError) -> str:
    """Return click's message about an argument in the form that other errors have, and where help
    is."""
    # click lists choices on lines of their own.
    message = in_a_line(error.format_message())
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        meant = _TRIED.get(error.option_name)
        if meant and any(meant in each.opts for each in error.ctx.command.params):
            message = f"No such option {error.option_name!r}: use {meant}"
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        if isinstance(error.param, click.Option):
            message = f"{error.param.opts[0]}: {error.message}"
        elif error.param is not None and error.ctx is not None:
            message = f"{error.param.make_metavar(error.ctx)}: {error.message}"
    command = "" if error.ctx is None else f" (see {error.ctx.command_path} --help)"
    return message.rstrip(".") + command


def _renamed(message: str, given: Callable[[str], str]) -> str:
    """Return the message of an OptionError with other names of the source's options; any other as
    it is."""
    found = _ERROR.fullmatch(message)
    if found is None:
        return message
    names = found["names"]
    if not names.startswith("-"):
        names = _WORD.sub(lambda name: given(name[0]), names)
    expected = _CAMEL_CASE.sub(lambda name: given(name[0]), found["expected"])
    return f"{names}: {found['found']}, expected {expected}"


def _given_names(name: str) -> tuple[str, ...]:
    with_dashes = re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", name)
    return _OTHER_NAMES.get(name, (f"--{with_dashes}",))
