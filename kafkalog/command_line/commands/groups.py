"""`kafkalog groups`: consumer groups and their lag, as kafka-consumer-groups shows them."""

from __future__ import annotations

import gc
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_output_options,
    exit_code,
    name_tables,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.command_line.terminal import print_note, printed_columns
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.errors import ConflictingOptionsError, RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.lag_options import lag_options
from kafkalog.views.options.offset_reset import OffsetReset, auto_offset_reset_option

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkalog.coordination.groups.group_records import GroupKey
    from kafkalog.questions.groups.lag import ConsumerLag
    from kafkalog.views.engine import LocalViews

_DESCRIBE, _LIST, _STATE, _MEMBERS, _LAGGING, _WHY, _HISTORY, _RESUME = (
    *("describe", "list", "state", "members", "lagging", "why", "history", "resume"),
)
# The table that --output-dir writes, of those that are printed.
_SAVED = {
    **dict.fromkeys((_DESCRIBE, _LAGGING), "consumer_lag"),
    _WHY: "group_reasons",
    _HISTORY: "commit_history",
    _RESUME: "group_resume",
}
_OF_GROUPS = (_LIST, _STATE, _MEMBERS)
_OF_LAG = (_DESCRIBE, _LAGGING)
# The tables that an option is about, where it is not about all.
_ONLY_WITH = {
    "--all-groups": (*_OF_LAG, *_OF_GROUPS, _RESUME),
    "--as-of": (*_OF_LAG, *_OF_GROUPS, _WHY, _HISTORY),
    "--auto-offset-reset": (_RESUME,),
    "--fail-on-findings": (*_OF_LAG, _WHY),
    "--group-pattern": (*_OF_LAG, *_OF_GROUPS, _RESUME),
    "--max-lag": (*_OF_LAG, _WHY),
    "--output-dir": tuple(_SAVED),
    "--topic": (*_OF_LAG, _RESUME),
    "--topic-pattern": (*_OF_LAG, _RESUME),
    "--zookeeper": (*_OF_LAG, *_OF_GROUPS),
}

_EPILOG = f"""\
{shared.PATHS_MEANING}
Give the log directories of all brokers: some have the commits, others the topics. LAG is the lag
of kafka-consumer-groups, which includes markers and gaps; TO-READ is the number of records left to
read. A group lags in a partition since the time of the first record, by offset, that it has not yet
read; a group lags since the earliest of these times. Groups of old consumers that commit to
ZooKeeper are included with --zookeeper.

\b
Examples:
  kafkalog groups /var/lib/kafka/data
  kafkalog groups /var/lib/kafka/data --lagging
  kafkalog groups /var/lib/kafka/data --lagging --verbose
  kafkalog groups /var/lib/kafka/data --why billing
  kafkalog groups /var/lib/kafka/data --history billing
  kafkalog groups /mnt/broker*/kafka-logs --resume --auto-offset-reset earliest
  kafkalog groups /var/lib/kafka/data --group billing --verbose
  kafkalog groups /var/lib/kafka/data --as-of 2026-11-17T12:00:00Z --lagging
  kafkalog groups /var/lib/kafka/data --state --format json
  kafkalog groups /var/lib/kafka/data --output-dir /tmp/lag
  kafkalog groups /var/lib/kafka/data --zookeeper /var/lib/zookeeper
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@click.option(
    "--describe",
    "table",
    flag_value=_DESCRIBE,
    default=True,
    help="Show offsets and lag by partition; the default.",
)
@click.option(
    "--lagging",
    "table",
    flag_value=_LAGGING,
    help="Show which groups lag and since when, with --verbose by partition.",
)
@click.option("--list", "table", flag_value=_LIST, help="List all groups and their types.")
@click.option("--state", "table", flag_value=_STATE, help="Show states, coordinators and types.")
@click.option("--members", "table", flag_value=_MEMBERS, help="Show members and their partitions.")
@click.option(
    "--why",
    metavar="GROUP",
    multiple=True,
    help="Show why this group does not read on, since when, and what to do; repeatable.",
)
@click.option(
    "--resume",
    "table",
    flag_value=_RESUME,
    help="Show where consumers continue that start after the next start of the brokers, with each "
    "replica as the leader: what they get again, and what they skip.",
)
@auto_offset_reset_option("With --resume: that of the consumers")
@click.option(
    "--history",
    metavar="GROUP",
    multiple=True,
    help="Show how this group's commits moved: what they jumped over, what was deleted before they "
    "came to it, where they went back, and two that commit by turns; repeatable. --verbose shows "
    "each commit.",
)
@click.option("--all-groups", is_flag=True, help="All groups, as without --group.")
@click.option(
    "--verbose",
    is_flag=True,
    help="Show since when a partition lags, the parts of its lag, and the status of its commit.",
)
@lag_options
@shared.fail_on_findings_option(default=False)
@answer_output_options
@shared.processes_option
def groups(
    paths: Sequence[str],
    table: str,
    reset: OffsetReset,
    why: Sequence[str],
    history: Sequence[str],
    all_groups: bool,
    verbose: bool,
    question: LagQuestion,
    zookeeper: Sequence[str],
    chroot: str | None,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show consumer groups, their offsets and their lag, now or at a past time."""
    from kafkalog.command_line.groups import group_notes, group_tables
    from kafkalog.inspection.partitions.newest_times import old_copy_words
    from kafkalog.questions.groups.group_parts import cluster_of_groups, optional_zookeeper
    from kafkalog.questions.groups.lag import ConsumerLag
    from kafkalog.storage.names import CONSUMER_OFFSETS

    given = {_WHY: why, _HISTORY: history}
    table, names = _chosen_table(table, given, question.chosen.groups, all_groups=all_groups)
    _refuse_combined(table, verbose=verbose)
    chosen = question.chosen._replace(groups=frozenset(names))
    question = replace(question, chosen=chosen)
    if table == _WHY:
        question = replace(question, read_committed=True)
    if table == _HISTORY:
        from kafkalog.command_line.groups.history_table import HistoryInput, write_history

        asked = HistoryInput(paths, question, processes)
        write_history(asked, output, verbose=verbose)
        return ExitCode.DONE
    columns = printed_columns(group_tables.group_columns(table, verbose=verbose))
    # Nothing that is read refers to itself, and to look for it takes a sixth of the time.
    gc.disable()
    click.get_current_context().call_on_close(gc.enable)
    logs = logs_of_topics(paths)
    old = optional_zookeeper(zookeeper, chroot)
    cluster = cluster_of_groups(old, paths, logs)
    saved = _SAVED.get(table, "")
    place = output.tables_of_logs((saved,), paths, logs, () if old is None else old.paths)
    commits = [log for log in logs if log.topic == CONSUMER_OFFSETS]
    with views_with_progress(paths, logs, processes, selected=commits) as views:
        lag = ConsumerLag(
            *(views, question, cluster), with_groups=True, with_members=table == _MEMBERS
        )
        found = _read(lag, table)
    group_notes.note_reach(lag, question.as_of_ms, question.now_ms)
    has_ages = question.as_of_ms is None and "time_lag_ms" in columns
    times_ms = [reach.newest_ms for reach in lag.rows.known.reaches]
    if has_ages and (words := old_copy_words(times_ms, CONSUMER_OFFSETS, question.now_ms)):
        print_note(words)
    if not lag.groups:
        group_notes.note_nothing_known(lag, logs, question.as_of_ms)
    requested = _requested(lag, table, {log.topic for log in logs})
    if not names and old is None:
        group_notes.note_zookeeper(logs)
    if table in (_LIST, _STATE, _MEMBERS):
        group_tables.write_groups(lag, requested, table, output.table_format, verbose=verbose)
    elif table == _RESUME:
        found = _write_resume(views, lag, found, question, reset, output.table_format)
    else:
        written = _LagTable(table, output.table_format, question.as_of_ms, verbose)
        found = _write_lags(views, lag, requested, found, written)
    if place is not None:
        name_tables([place.replace(saved, found)])
    if lag.findings and (fail_on_findings or question.max_lag is not None):
        print_note(f"findings: {', '.join(lag.findings)}")
    return exit_code(has_findings=bool(lag.findings), fails=fail_on_findings)


def _read(lag: ConsumerLag, table: str) -> pa.Table:
    """Read what a table needs, and return its rows: of table `consumer_lag`, or of commits."""
    if table == _RESUME:
        return lag.rows.commits_alone()
    if table in (_LIST, _STATE, _MEMBERS):
        return lag.rows.groups_alone()
    return lag.rows.rows().table


class _LagTable(NamedTuple):
    table: str
    table_format: str
    as_of: int | None
    verbose: bool


def _write_lags(
    views: LocalViews,
    lag: ConsumerLag,
    groups: Collection[GroupKey],
    found: pa.Table,
    written: _LagTable,
) -> pa.Table:
    """Write one of the tables about the lag of groups, and what it cannot show; return the rows
    that a job writes of it."""
    from kafkalog.command_line.groups import group_notes, group_tables
    from kafkalog.questions.groups.cluster_facts import cluster_facts
    from kafkalog.questions.groups.lag_row import lag_rows_of, notable_rows
    from kafkalog.views.engine import RowsInMemory

    table, table_format, as_of, verbose = written
    clocks = verbose or table == _LAGGING
    rows = lag_rows_of(found if clocks or table == _WHY else notable_rows(found))
    if table == _WHY:
        from kafkalog.questions.why import why_rows

        reasons = RowsInMemory.of(_SAVED[_WHY], why_rows(views, lag, groups, rows))
        group_tables.write_why([*reasons], table_format)
        found = reasons.table
    elif table == _LAGGING:
        group_tables.write_lagging(lag, rows, table_format, verbose=verbose)
    else:
        group_tables.write_offsets(lag, groups, found, table_format, verbose=verbose)

    def deleted_topics() -> set[str]:
        now = lag.facts if as_of is None else cluster_facts(views, None)
        return now.deleted_topics()

    group_notes.note_rows(rows, deleted_topics, as_of, clocks=clocks)
    return found


def _write_resume(
    views: LocalViews,
    lag: ConsumerLag,
    found: pa.Table,
    question: LagQuestion,
    reset: OffsetReset,
    table_format: str,
) -> pa.Table:
    """Write where consumers of groups continue; return the rows that a job writes of it."""
    from kafkalog.command_line.groups.group_tables import write_resume
    from kafkalog.questions.positions.group_resume import ResumeRequest, group_resume

    request = ResumeRequest(reset, question.now_ms, question.read_committed)
    resume = group_resume(views, found, request)
    write_resume(lag, resume, table_format)
    return resume.rows.table


def _refuse_combined(table: str, *, verbose: bool) -> None:
    """Raise OptionError for an option that the table does not have."""
    if verbose and table in (_LIST, _STATE, _WHY, _RESUME):
        raise ConflictingOptionsError("--verbose", f"--{table}")
    context = click.get_current_context()
    for option, tables in _ONLY_WITH.items():
        (parameter,) = (each for each in context.command.params if option in each.opts)
        source = context.get_parameter_source(parameter.name or "")
        if source is click.core.ParameterSource.DEFAULT or table in tables:
            continue
        if table == _DESCRIBE:
            raise RefusedOptionError(option, f"only with --{tables[0]}")
        raise ConflictingOptionsError(option, f"--{table}")


def _chosen_table(
    table: str, named: Mapping[str, Sequence[str]], groups: Collection[str], *, all_groups: bool
) -> tuple[str, Collection[str]]:
    """Return which table is printed, and of which groups; `named` are the groups that an option of
    a table names. Raises ConflictingOptionsError."""
    given: dict[str, Collection[str] | bool] = {f"--{name}": it for name, it in named.items()}
    given |= {"--all-groups": all_groups, "--group": groups}
    if len(chosen := [name for name, value in given.items() if value]) > 1:
        raise ConflictingOptionsError(*chosen[:2])
    for name, names in named.items():
        if names:
            table, groups = name, names
    return table, groups


def _requested(lag: ConsumerLag, table: str, topics: Collection[str | None]) -> set[GroupKey]:
    """Return the groups that are chosen. Raises LogDirError for an unknown one where records are
    missing that may be about it, and else OptionError; so for a topic that no group reads and that
    none of the logs has, `topics`."""
    from kafkalog.inspection.logs.missing_records import refuse_unknown_of_records
    from kafkalog.questions.groups.group_parts import IN_ZOOKEEPER

    chosen = lag.question.chosen
    known = {key for key, group in lag.groups.items() if group.state != "Dead"}
    names = {key.group_id for key in known}
    refuse_unknown_of_records(
        "--why" if table == _WHY else "--group",
        *("group", chosen.groups - names, lambda: names, lag.missing, f" ({IN_ZOOKEEPER})"),
    )
    unread = chosen.topics - lag.rows.known.names.topics - {*topics}
    refuse_unknown_of_records("--topic", "topic", unread, lambda: topics, lag.missing)
    return {key for key in known if chosen.is_group is None or chosen.is_group(key.group_id)}
