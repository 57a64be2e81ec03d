"""`kafkalog lag-history`: how far behind groups were in the past, and in which status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_options,
    exit_code,
    name_tables,
    write_answer,
    write_words,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.command_line.terminal import printed_columns
from kafkalog.coordination.groups.lag_question import LagHistoryQuestion
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.lag_options import history_options
from kafkalog.words import time_text

_GROUP = "group"
_TABLES = {"event": "lag_history", "generation": "group_generations"}
_GROUP_COLUMNS = (
    *("group_id", "status", "burrow_status", "partitions", "errors", "readable_records"),
    *("behind_since_ms", "last_commit_ms", "topic", "partition", "reason"),
)
_TEXT_COLUMNS = {
    "event": (
        *("group_id", "topic", "partition", "event", "at_ms", "committed_offset"),
        *("readable_records", "time_lag_ms", "status", "reason"),
    ),
    "generation": (
        *("group_id", "group_type", "generation", "state", "record_timestamp_ms", "members"),
        *("partitions_moved", "protocol", "leader"),
    ),
}
_TEXTS: dict[str, Callable[[Any], str]] = dict.fromkeys(
    ("behind_since_ms", "last_commit_ms", "at_ms", "record_timestamp_ms"), time_text
)

_EPILOG = f"""\
{shared.PATHS_MEANING}
Give the log directories of all brokers: some have the commits, others the topics. The history goes
as far back as __consumer_offsets. Findings are groups that have a partition with an error at the
end, and damage that hides commits. For an earlier copy give its time as --until-time: a group that
stopped with it is not an error. See docs/lag.md.

\b
Examples:
  kafkalog lag-history /var/lib/kafka/data
  kafkalog lag-history /var/lib/kafka/data --by event --every 5m --group billing
  kafkalog lag-history /var/lib/kafka/data --output-dir /tmp/history
"""


@click.command("lag-history", epilog=_EPILOG)
@shared.paths_argument
@history_options
@answer_options(
    (_GROUP, *_TABLES),
    "A row per group with its status at the end, per commit or moment of a group's partition, or "
    "per generation of a group.",
)
@shared.processes_option
def lag_history(
    paths: Sequence[str],
    question: LagHistoryQuestion,
    zookeeper: Sequence[str],
    chroot: str | None,
    by: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show the lag and the status of groups over time, and their generations."""
    from kafkalog.questions.groups.group_parts import cluster_of_groups, optional_zookeeper
    from kafkalog.questions.groups.lag_history import LagHistory

    table_format = output.table_format
    columns = (
        printed_columns(_GROUP_COLUMNS)
        if by == _GROUP
        else answer_columns(_TABLES[by], _TEXT_COLUMNS[by], table_format)
    )
    old = optional_zookeeper(zookeeper, chroot)
    logs = logs_of_topics(paths)
    cluster = cluster_of_groups(old, paths, logs)
    place = output.tables_of_logs(_TABLES.values(), paths, logs, () if old is None else old.paths)
    written: list[str] = []
    with views_with_progress(paths, logs, processes) as views:
        history = LagHistory(views, question, cluster)
        rows: Any = None
        if by == "event":
            rows = history.rows.rows()
        if place is not None:
            written.append(place.replace(_TABLES["event"], rows.table if rows else history.rows))
        elif rows is None:
            history.rows.counted()
        if by == _GROUP:
            rows = (each._asdict() for each in history.statuses)
        elif by == "generation":
            rows = history.rows.generations()
        if place is not None:
            written.append(place.replace(_TABLES["generation"], history.rows.generations().table))
        lines = history.words()
    write_answer(columns, rows, table_format, show=show, texts=_TEXTS)
    write_words(lines, table_format)
    name_tables(written)
    return exit_code(has_findings=history.has_findings, fails=fail_on_findings)
