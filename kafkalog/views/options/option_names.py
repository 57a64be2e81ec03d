"""Errors about options of the source, in the names that a command or a job has for them."""

from __future__ import annotations

import re

import click

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
_ERROR = re.compile(r"(?s)option (?P<names>.+?): got (?P<value>.*), allowed: (?P<allowed>.*)")
_WORD = re.compile(r"\w+")
_CAMEL_CASE = re.compile(r"\b[a-z]+(?:[A-Z][a-z]+)+\b")


def named_as_given(message: str, command: click.Command) -> str:
    """Return the message of an OptionError with the command's names of the options. Options that
    the command does not have keep the source's names."""
    found = _ERROR.fullmatch(message)
    if found is None:
        return message
    own = {name for each in command.params for name in each.opts}
    if any(isinstance(each, click.Argument) for each in command.params):
        own.add("PATH")

    def given(name: re.Match[str]) -> str:
        return next((each for each in _given_names(name[0]) if each in own), name[0])

    names = found["names"]
    if not names.startswith("-"):
        names = _WORD.sub(given, names)
    allowed = _CAMEL_CASE.sub(given, found["allowed"])
    return f"option {names}: got {found['value']}, allowed: {allowed}"


def _given_names(name: str) -> tuple[str, ...]:
    with_dashes = re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", name)
    return _OTHER_NAMES.get(name, (f"--{with_dashes}",))
