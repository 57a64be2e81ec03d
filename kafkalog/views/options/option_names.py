"""Errors about options of the source, in the names that a command, a job or Python has for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import click

from kafkalog.errors import KafkaLogError, OptionError
from kafkalog.words import in_a_line, similar_names

# Where the name is not the source's with dashes: those that commands and jobs have for it.
_OTHER_NAMES = {
    "assign": ("--topic",),
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
_TRIED = {"--after": "--from-time", "--at": "--as-of", "--before": "--until-time"}
# Where a parameter's name is not the option's with underscores.
_PARAMETERS = {"--topic": "topics", "PATH": "path"}
# What stands around a name in a sentence.
_AROUND = "(),;:.'`"


def named_as_given(error: OptionError, command: click.Command) -> str:
    """Return what an error says, with the command's names of the options. Options that the command
    does not have keep the source's names."""
    return error.told(_named_by(command))


def first_named_as_given(message: str, command: click.Command) -> str:
    """Return the message of an OptionError from another process, which has only its text, with the
    command's name of the option at its beginning."""
    name, colon, rest = message.partition(": ")
    return f"{_named_by(command)(name)}{colon}{rest}"


@contextmanager
def options_named_as(parameters: Collection[str]) -> Iterator[None]:
    """Give the errors of a block the names that options have as `parameters` of a Python function;
    what commands, jobs and the source share has other names for them."""
    try:
        yield
    except KafkaLogError as error:
        error.args = (named_as_parameters(error, parameters),)
        raise


def named_as_parameters(error: KafkaLogError, parameters: Collection[str]) -> str:
    """Return what an error says, with the names that options have as `parameters` of a Python
    function. Options that it does not have keep their names."""

    def given(name: str) -> str:
        # An option can stand with its value.
        option, space, value = name.partition(" ")
        names = map(_parameter, _given_names(option))
        return next((each for each in names if each in parameters), option) + space + value

    def given_word(word: str) -> str:
        bare = word.strip(_AROUND)
        return word.replace(bare, given(bare)) if bare.startswith("--") else word

    said = error.told(given) if isinstance(error, OptionError) else str(error)
    # What jobs and commands share names further options with dashes, as what to do.
    return " ".join(map(given_word, said.split(" ")))


def usage_error_text(error: click.UsageError) -> str:
    """Return click's message about an argument in the form that other errors have, and where help
    is."""
    # click lists choices on lines of their own.
    message = in_a_line(error.format_message())
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        own = [name for each in error.ctx.command.params for name in each.opts]
        meant = _TRIED.get(error.option_name)
        near = similar_names(error.option_name, [name for name in own if name.startswith("--")])
        if meant in own:
            message = f"No such option {error.option_name!r}: use {meant}"
        elif near:
            message = f"No such option {error.option_name!r}: did you mean {', '.join(near)}?"
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        if isinstance(error.param, click.Option):
            message = f"{error.param.opts[0]}: {_with_choice(error.param, error.message)}"
        elif error.param is not None and error.ctx is not None:
            message = f"{error.param.make_metavar(error.ctx)}: {error.message}"
    command = "" if error.ctx is None else f" (see {error.ctx.command_path} --help)"
    return message.rstrip(".") + command


def _with_choice(option: click.Option, message: str) -> str:
    """Return click's message about a value with the choice that it is like, if there is one."""
    given = re.match("'([^']*)' is not one of", message)
    if given is None or not isinstance(option.type, click.Choice):
        return message
    near = similar_names(given[1], [str(each) for each in option.type.choices])
    return f"{message.rstrip('.')}; did you mean {' or '.join(near)}?" if near else message


def _named_by(command: click.Command) -> Callable[[str], str]:
    own = {name for each in command.params for name in each.opts}
    if any(isinstance(each, click.Argument) for each in command.params):
        own.add("PATH")
    return lambda name: next((each for each in _given_names(name) if each in own), name)


def _parameter(option: str) -> str:
    return _PARAMETERS.get(option, option.removeprefix("--").replace("-", "_"))


def _given_names(name: str) -> tuple[str, ...]:
    if name.startswith("-"):
        return (name,)
    with_dashes = re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", name)
    return (*_OTHER_NAMES.get(name, ()), f"--{with_dashes}")
