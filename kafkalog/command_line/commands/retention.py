"""`kafkalog retention`: which segments a broker's retention deletes, when, and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_options,
    exit_code,
    save_tables,
    write_answer,
    write_words,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.command_line.terminal import print_note, printed_columns
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources
from kafkalog.words import size_text, time_text

_TABLE = "retention_plan"
_SEGMENT_COLUMNS = (
    *("topic", "partition", "segment_base_offset", "bytes", "goes", "reason", "expires_at_ms"),
    *("largest_timestamp_ms", "cleanup_policy", "retention_ms", "retention_bytes"),
)
_TOPIC_COLUMNS = (
    *("topic", "segments", "segments_going", "bytes", "bytes_freed", "bytes_within_day"),
    *(
        "bytes_within_week",
        "bytes_unknown",
        "blocked_partitions",
        "blocked_by_ms",
        "padded_segments",
        "missing_settings",
    ),
)
_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys((name for name in _TOPIC_COLUMNS if name.startswith("bytes")), size_text),
    **dict.fromkeys(("expires_at_ms", "largest_timestamp_ms", "blocked_by_ms"), time_text),
}

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command changes and deletes nothing. The settings of topics come from __cluster_metadata in the
input, or with --zookeeper from ZooKeeper; --server-properties has those that topics do not set.
Settings that nothing gives are named; --set tries others. Findings are topics whose retention a
timestamp in the future blocks, and segments that a broker takes to be of 1970 because their time
index ends with zeros.

\b
Examples:
  kafkalog retention /var/lib/kafka/data --server-properties server.properties
  kafkalog retention /var/lib/kafka/data --topic orders --set retention.ms=1d
  kafkalog retention /var/lib/kafka/data --by segment --topic orders --as-of 2026-12-01T00:00:00Z
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@shared.config_options
@shared.set_option
@shared.as_of_option("Plan as of this time instead of now")
@answer_options(("topic", "segment"), "A row per topic, or per segment.")
@shared.processes_option
def retention(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    configs: ConfigSources,
    settings: dict[str, str],
    as_of: int | None,
    by: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show which segments a broker's retention deletes now or at a time, and why."""
    from kafkalog.questions.retention import RetentionRequest
    from kafkalog.questions.retention import retention as answer
    from kafkalog.storage.log_dir.other_entries import absent_lines

    table_format = output.table_format
    columns = (
        answer_columns(_TABLE, _SEGMENT_COLUMNS, table_format)
        if by == "segment"
        else printed_columns(_TOPIC_COLUMNS)
    )
    configs.given()
    found = logs_of_topics(paths)
    logs = logs_of_topics(paths, topics, partitions, found)
    config = configs.with_settings(settings, logs, topics).options()
    place = output.tables_of_logs([_TABLE], paths, found)
    at_ms = time.time_ns() // 1_000_000 if as_of is None else as_of
    with views_with_progress(paths, found, processes, selected=logs) as views:
        plan = answer(views, RetentionRequest(at_ms, config, logs))
    for line in absent_lines(paths, logs, topics, partitions):
        print_note(line)
    totals = ({**asdict(each), "missing_settings": each.missing} for each in plan.most_first())
    rows = plan.rows if by == "segment" else totals
    write_answer(columns, rows, table_format, show=show, texts=_TEXTS)
    write_words(plan.words(), table_format)
    save_tables(place, {_TABLE: plan.rows})
    return exit_code(has_findings=plan.has_findings, fails=fail_on_findings)
