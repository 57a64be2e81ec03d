"""The arguments that say what is read: the same paths as those of jobs, topics and partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import Any

import click

from kafkalog.command_line.terminal import tell
from kafkalog.errors import LogDirError, OptionError
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import PartitionLog, is_asked
from kafkalog.words import TIMES_ALLOWED, first_names, given_time_ms, names_that_are_there

# How a path is written that is read, for help texts.
LOG_DIRS_MEANING = """\
\b
A LOG_DIR is a broker's log directory, a partition directory, a .log file, or a
glob of these; a path, or a URI such as s3://bucket/path with credentials in the
environment.
"""
# Either name gives the moment that a command speaks of.
MOMENT_NAMES = ("--as-of", "--at")


def log_dirs_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """The argument LOG_DIR..., given to the command as `log_dirs`."""
    return click.argument(
        "log_dirs", metavar="LOG_DIR...", nargs=-1, required=True, type=click.Path()
    )(function)


def new_log_dir_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option --to, given to the command as `target`: a log directory to write."""
    return click.option(
        "--to",
        "target",
        metavar="NEW_LOG_DIR",
        required=True,
        type=click.Path(),
        help="The log directory to write; it must not exist.",
    )(function)


def partition_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options --topic and --partition, given to the command as `topics` and `partitions`."""
    topic = click.option(
        "--topic", "topics", metavar="TOPIC", multiple=True, help="Only this topic; repeatable."
    )
    return topic(partition_option("Only this partition of each topic; repeatable.")(function))


def partition_option(meaning: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option --partition alone, given to the command as `partitions`."""
    return click.option(
        "--partition",
        "partitions",
        metavar="N",
        type=click.IntRange(min=0),
        multiple=True,
        help=meaning,
    )


class _Time(click.ParamType[int]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return given_time_ms(value, tell)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def time_option(
    names: Sequence[str], parameter: str, meaning: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option that is a time, given to the command in milliseconds."""
    words = f"{meaning}: such as 2026-11-21T12:00:00Z, {TIMES_ALLOWED}."
    return click.option(*names, parameter, metavar="TIME", type=_Time(), help=words)


def bytes_in(logs: Sequence[PartitionLog]) -> int:
    """The size of all log files of the logs."""
    return sum(segment.size for log in logs for segment in log.segments)


def logs_of_topics(
    log_dirs: Sequence[str], topics: Sequence[str] = (), partitions: Sequence[int] = ()
) -> list[PartitionLog]:
    """The logs under the paths, internal topics included; of these topics and partitions, if any
    are given. A checkpoint file that cannot be read is logged and left aside.

    Raises LogDirError for paths that hold no log, and for what only checkpoints there know; and
    OptionError for a topic or a partition that none of them has.
    """
    found = find_partitions(log_dirs, strict=False)
    with missing_topics_explained(log_dirs, found, topics, partitions):
        return with_topics(found, topics, partitions)


@contextmanager
def missing_topics_explained(
    log_dirs: Sequence[str],
    found: Sequence[PartitionLog],
    topics: Sequence[str],
    partitions: Sequence[int],
) -> Iterator[None]:
    """Say of topics and partitions that are refused, because none of `found` has them, what else
    the log directories know of them. Raises as `logs_of_topics` does."""
    try:
        yield
    except OptionError as error:
        from kafkalog.storage.log_dir.other_entries import absent_lines

        deleted = [*_deleted_lines(log_dirs, set(topics) - {log.topic for log in found})]
        absent = [*absent_lines(log_dirs, found, topics, partitions)]
        if absent:
            raise LogDirError("; ".join((*absent, *deleted))) from None
        if deleted:
            allowed = "; ".join((str(error.allowed), *deleted))
            raise OptionError(error.name, error.value, allowed) from None
        raise


def _deleted_lines(log_dirs: Sequence[str], topics: Collection[str]) -> Iterator[str]:
    """A line for each of the topics that is there in directories which a broker has marked."""
    from kafkalog.storage.log_dir.deleted_logs import deleted_names
    from kafkalog.storage.log_dir.log_dir import input_entries

    directories = [
        entry.path for path in log_dirs for entry in input_entries(path) if entry.is_directory
    ]
    for directory in directories:
        for topic, names in deleted_names(directory, topics).items():
            yield (
                f"{topic} was deleted or set aside in {directory}, where {first_names(names, 3)} "
                f"is left: kafkalog undelete {quote(directory)} --topic {topic} --to NEW brings "
                "it back"
            )


def with_topics(
    found: list[PartitionLog], topics: Sequence[str], partitions: Sequence[int]
) -> list[PartitionLog]:
    """Of the logs those of these topics and partitions, if any are given. Raises OptionError for
    one that is not among them."""
    if topics:
        present = {log.topic for log in found}
        _refuse_missing("--topic", set(topics) - present, present)
        found = those_of(found, topics)
    if partitions:
        numbers = {log.partition for log in found}
        _refuse_missing("--partition", set(partitions) - numbers, numbers)
        found = those_of(found, partitions=partitions)
    return found


def those_of(
    found: Sequence[PartitionLog], topics: Sequence[str] = (), partitions: Sequence[int] = ()
) -> list[PartitionLog]:
    """The logs of these topics and partitions, of all where none are given."""
    return [log for log in found if is_asked(log.topic, log.partition, topics, partitions)]


def _refuse_missing(option: str, missing: set[Any], present: set[Any]) -> None:
    if missing:
        names = [str(value) for value in sorted(present - {None})]
        held = names_that_are_there([str(value) for value in missing], names)
        raise OptionError(
            option,
            ",".join(map(str, sorted(missing))),
            f"what the log directories hold: {held}",
        )
