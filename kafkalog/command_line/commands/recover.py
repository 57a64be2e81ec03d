"""`kafkalog recover`: what a broker would do to its log directories at its next start."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.answer_output import AnswerOutput, answer_output_options, save_tables
from kafkalog.command_line.findings_table import (
    answer_columns,
    exit_code,
    shown_rows_option,
    write_answer,
    write_verdict,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.command_line.terminal import print_note
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.click_options import PATHS_MEANING

if TYPE_CHECKING:
    from kafkalog.views.engine import Rows

_PLAN, _SEQUENCES = "recovery_plan", "producer_sequences"
_TEXT_COLUMNS = {
    _PLAN: (
        *("topic", "partition", "broker_starts", "log_end_offset", "lost_records"),
        *("salvageable_records", "missing_offsets", "remaining_faults", "consumers_stop_at"),
        "padded_time_indexes",
        *("cut_kind", "cut_position", "cut_file", "start_error"),
    ),
    _SEQUENCES: (
        *("topic", "partition", "kind", "producer_id", "producer_epoch", "base_offset"),
        *("first_sequence", "expected_sequence", "file", "position"),
    ),
}

_EPILOG = f"""\
{PATHS_MEANING}
The command changes nothing. Its plan shows where a broker would truncate each log, what would be
lost, and how much of that `kafkalog salvage` could save. Findings are records that are or would be
lost, damage that would remain, and a broker that would not start. See docs/recovery.md.

\b
Examples:
  kafkalog recover /var/lib/kafka/data
  kafkalog recover /var/lib/kafka/data --shutdown clean --all
  kafkalog recover /var/lib/kafka/data --topic orders --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@shared.shutdown_option
@shared.index_interval_option("the topics")
@click.option(
    "--all", "with_all", is_flag=True, help="As text, show partitions that lose nothing too."
)
@click.option(
    "--sequences",
    "table",
    flag_value=_SEQUENCES,
    default=_PLAN,
    help="Show irregular sequence numbers of idempotent producers instead of the plan.",
)
@shown_rows_option("rows")
@shared.fail_on_findings_option(default=True)
@answer_output_options
@shared.processes_option
def recover(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    shutdown: str,
    index_interval_bytes: int,
    with_all: bool,
    table: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show what a broker would do to its log directories at its next start."""
    from kafkalog.questions.recovery import RecoveryRequest, recovery, recovery_plan, sequence_words
    from kafkalog.storage.log_dir.other_entries import absent_lines

    table_format = output.table_format
    columns = answer_columns(table, _TEXT_COLUMNS[table], table_format)
    logs = logs_of_topics(paths, topics, partitions)
    settings = RecoveryRequest(shutdown, index_interval_bytes, time.time_ns() // 1_000_000)
    place = output.tables_of_logs(_TEXT_COLUMNS, paths, logs)
    tables: dict[str, Rows] = {}
    with views_with_progress(paths, logs, processes) as views:
        if place is not None:
            plan, sequences = recovery(views, settings)
            tables = {_PLAN: plan.plan, _SEQUENCES: sequences}
        elif table == _PLAN:
            plan = recovery_plan(views, settings)
        else:
            (sequences,) = views.rows(settings.asked(table))
        if table == _PLAN:
            rows, found, verdict = plan.plan, plan.findings, plan.totals.words()
        else:
            rows, found = sequences, [*sequences]
            verdict = sequence_words(sequences)
    for line in absent_lines(paths, logs, topics, partitions):
        print_note(line)
    shown = found if table_format == "text" and not with_all else rows
    write_answer(columns, shown, table_format, show=show)
    write_verdict(verdict, table_format, has_findings=bool(found))
    save_tables(place, tables)
    return exit_code(has_findings=bool(found), fails=fail_on_findings)
