"""Options that contradict each other on a command line."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kafkalog.errors import ConflictingOptionsError, OptionError, RepeatedOptionError

# A pattern, and the exact names that cannot be given beside it.
_EXCLUSIVE = {"topic_pattern": "topics", "group_pattern": "groups"}


def refuse_contradictions(
    command: click.Command, arguments: Sequence[str], context: click.Context
) -> None:
    """Raise OptionError where an option that takes one value is given twice, where two options
    set the same parameter, or where there are both names and a pattern: click would silently take
    the last one."""
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
            raise RepeatedOptionError(option.opts[0])
    names = {each.name: each.opts[0] for each in given}
    for pattern, exact in _EXCLUSIVE.items():
        if pattern in names and exact in names:
            raise ConflictingOptionsError(names[pattern], names[exact])


def refuse_inverted_times(from_ms: int | None, until_ms: int | None) -> None:
    """Raise OptionError for an --until-time before --from-time."""
    if from_ms is not None and until_ms is not None and until_ms < from_ms:
        raise OptionError("--until-time", until_ms, "a time not before --from-time")
