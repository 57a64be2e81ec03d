"""`kafkalog groups`: what kafka-consumer-groups tells, from disk, and who is behind since when."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.inputs import (
    LOG_DIRS_MEANING,
    MOMENT_NAMES,
    bytes_in,
    log_dirs_argument,
    time_option,
)
from kafkalog.command_line.parallel import processes_for, processes_option
from kafkalog.command_line.terminal import progress_bar, table_format_option
from kafkalog.coordination.groups.commit_status import OFFSETS_RETENTION_MINUTES
from kafkalog.errors import ConflictingOptionsError, OptionError
from kafkalog.words import names_that_are_there

if TYPE_CHECKING:
    from kafkalog.command_line.groups.group_sources import GroupSources
    from kafkalog.coordination.groups.group_records import GroupKey

_DESCRIBE, _LIST, _STATE, _MEMBERS, _LAGGING = "describe", "list", "state", "members", "lagging"

_EPILOG = f"""\
{LOG_DIRS_MEANING}
Give the log directories of all brokers: commits are on some, topics on others. LAG is that of
kafka-consumer-groups, markers and gaps included; TO-READ is how many records there are to read.
A partition is behind since the time of the first record, by offset, that the group has yet to read;
a group since the earliest of these.
What old consumers commit to ZooKeeper is not there: kafkalog job consumer_lag with
--zookeeper DIR reads it, and tells both.

\b
Examples:
  kafkalog groups /var/lib/kafka/data
  kafkalog groups /var/lib/kafka/data --lagging
  kafkalog groups /var/lib/kafka/data --lagging --verbose
  kafkalog groups /var/lib/kafka/data --group billing --verbose
  kafkalog groups /var/lib/kafka/data --as-of 2026-11-17T12:00:00Z --lagging
  kafkalog groups /var/lib/kafka/data --state --format json
"""


@click.command(epilog=_EPILOG)
@log_dirs_argument
@click.option("--describe", "table", flag_value=_DESCRIBE, default=True, help="Offsets and lag.")
@click.option(
    "--lagging",
    "table",
    flag_value=_LAGGING,
    help="Who is behind since when, a row per group; with --verbose per partition.",
)
@click.option("--list", "table", flag_value=_LIST, help="All groups and their types.")
@click.option("--state", "table", flag_value=_STATE, help="States, coordinators, types.")
@click.option("--members", "table", flag_value=_MEMBERS, help="Members and what they have.")
@click.option(
    "--group", "groups", metavar="GROUP", multiple=True, help="Only this group; repeatable."
)
@click.option("--all-groups", is_flag=True, help="All of them, as without --group.")
@click.option(
    "--verbose",
    is_flag=True,
    help="Per partition also since when it is behind, parts of its lag, its commit's status.",
)
@time_option(MOMENT_NAMES, "as_of", "What was so at a past moment")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="What the consumers read.",
)
@click.option(
    "--offsets-retention",
    metavar="MINUTES",
    type=click.IntRange(min=0),
    default=OFFSETS_RETENTION_MINUTES,
    show_default=True,
    help="The brokers' offsets.retention.minutes, for the status of commits.",
)
@table_format_option
@processes_option
def groups(
    log_dirs: Sequence[str],
    table: str,
    groups: Sequence[str],
    all_groups: bool,
    verbose: bool,
    as_of: int | None,
    isolation_level: str,
    offsets_retention: int,
    table_format: str,
    processes: int | None,
) -> None:
    """Tell consumer groups, their offsets and their lag, now or at a past moment."""
    from kafkalog.command_line.groups import group_notes, group_tables
    from kafkalog.command_line.groups.group_sources import (
        Reading,
        bytes_to_read,
        complete_logs,
        deleted_topics,
        group_sources,
        logs_with_groups,
    )
    from kafkalog.command_line.groups.lag_rows import lag_rows

    if all_groups and groups:
        raise ConflictingOptionsError("--all-groups", "--group")
    if verbose and table in (_LIST, _STATE):
        raise ConflictingOptionsError("--verbose", f"--{table}")
    logs = logs_with_groups(log_dirs)
    size = bytes_to_read(logs)
    with progress_bar(size, "reading") as bar:
        reading = Reading(log_dirs, processes_for(size, processes), bar.update)
        sources = group_sources(reading, logs, at_ms=as_of, retention_ms=offsets_retention * 60_000)
        complete = complete_logs(reading, logs)
    now_ms = time.time_ns() // 1_000_000
    group_notes.tell_reach(complete, as_of, now_ms)
    if not sources.groups:
        group_notes.tell_nothing_known(logs, complete, as_of)
    asked = _asked(sources, groups, lists_all=table == _LIST)
    if not groups:
        group_notes.tell_of_zookeeper(logs)
    if table == _LIST:
        group_tables.write_names(sources, asked, table_format)
    elif table == _STATE:
        group_tables.write_states(sources, asked, table_format)
    elif table == _MEMBERS:
        group_tables.write_members(sources, asked, table_format, verbose=verbose)
    else:
        rows = lag_rows(
            sources,
            [place for place in sources.commits.keys() | sources.assigned if place[0] in asked],
            as_of=as_of,
            now_ms=now_ms,
            read_committed=isolation_level == "read_committed",
            processes=processes_for(bytes_in(logs), processes),
        )
        found = sorted(rows, key=lambda row: (row.group.group_id, row.topic, row.partition))
        if table == _LAGGING:
            group_tables.write_lagging(sources, found, table_format, verbose=verbose)
        else:
            group_tables.write_offsets(found, table_format, verbose=verbose)
        group_notes.tell_unread(found)
        group_notes.tell_unknown(found, lambda: deleted_topics(log_dirs, logs), as_of)
        group_notes.tell_uncounted(found)
        if verbose or table == _LAGGING:
            group_notes.tell_clocks(found, as_of)


def _asked(sources: GroupSources, names: Sequence[str], *, lists_all: bool) -> set[GroupKey]:
    """The groups that are there, those of the names if any are given. Share groups, which commit no
    offsets, only where they are named or all are listed."""
    from kafkalog.command_line.groups.group_sources import IN_ZOOKEEPER

    known = {key: group for key, group in sources.groups.items() if group.state != "Dead"}
    missing = set(names) - {key.group_id for key in known}
    if missing:
        shown = names_that_are_there(missing, {key.group_id for key in known})
        raise OptionError(
            "--group",
            ",".join(sorted(missing)),
            f"groups that are there: {shown} ({IN_ZOOKEEPER})",
        )
    return {
        key
        for key, group in known.items()
        if key.group_id in names or (not names and (lists_all or group.group_type != "share"))
    }
