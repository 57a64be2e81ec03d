"""Options that contradict each other on a command line."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kafkalog.errors import ConflictingOptionsError, OptionError


def refuse_contradictions(
    command: click.Command, arguments: Sequence[str], context: click.Context
) -> None:
    """Raise OptionError where an option that takes one value is given twice, or where two options
    contradict each other: click would silently take the last one."""
    parser = command.make_parser(click.Context(command, parent=context))
    try:
        _, _, given = parser.parse_args(list(arguments))
    except click.UsageError:
        return  # click says it better when the command is run
    seen: dict[str | None, click.Option] = {}
    for option in given:
        if not isinstance(option, click.Option) or option.multiple or option.is_bool_flag:
            continue
        before = seen.setdefault(option.name, option)
        if before is not option:
            raise ConflictingOptionsError(option.opts[0], before.opts[0])
        if not option.is_flag and given.count(option) > 1:
            raise OptionError(option.opts[0], "two values", "one")
