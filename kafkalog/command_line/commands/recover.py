"""`kafkalog recover`: what a broker would do to log directories at its next start."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.broker_options import index_interval_option
from kafkalog.command_line.findings_table import (
    show_option,
    table_rows,
    write_findings,
    write_verdict,
)
from kafkalog.command_line.inputs import (
    LOG_DIRS_MEANING,
    bytes_in,
    log_dirs_argument,
    logs_of_topics,
    partition_options,
)
from kafkalog.command_line.parallel import processes_for, processes_option
from kafkalog.command_line.terminal import progress_bar, table_format_option, tell
from kafkalog.exit_codes import ExitCode
from kafkalog.words import counted

if TYPE_CHECKING:
    from kafkalog.storage.partition_log import PartitionLog

_SHUTDOWNS = ("asFound", "clean", "unclean")
_PLAN, _SEQUENCES = "recovery_plan", "producer_sequences"
_TEXT_COLUMNS = {
    _PLAN: (
        *("topic", "partition", "broker_starts", "log_end_offset", "lost_records"),
        *("salvageable_records", "missing_offsets", "remaining_faults", "consumers_stop_at"),
        *("cut_kind", "cut_position", "cut_file", "start_error"),
    ),
    _SEQUENCES: (
        *("topic", "partition", "kind", "producer_id", "producer_epoch", "base_offset"),
        *("first_sequence", "expected_sequence", "file", "position"),
    ),
}
_Row = Mapping[str, Any]

_EPILOG = f"""\
{LOG_DIRS_MEANING}
Nothing is changed: the plan says where a broker would cut each log, what would be lost, and what of
that `kafkalog salvage` could save. What to do then: docs/recovery.md. Exit code 1 says that
something is or would be lost, that damage would stay, or that a broker would not start.

\b
Examples:
  kafkalog recover /var/lib/kafka/data
  kafkalog recover /var/lib/kafka/data --shutdown clean --all
  kafkalog recover /var/lib/kafka/data --topic orders --format json
"""


@click.command(epilog=_EPILOG)
@log_dirs_argument
@partition_options
@click.option(
    "--shutdown",
    type=click.Choice(_SHUTDOWNS),
    default=_SHUTDOWNS[0],
    show_default=True,
    help="The stop before the start: by .kafka_cleanshutdown, or as given.",
)
@index_interval_option("the topics")
@click.option("--all", "with_all", is_flag=True, help="In text, partitions that lose nothing too.")
@click.option(
    "--sequences",
    "table",
    flag_value=_SEQUENCES,
    default=_PLAN,
    help="Irregular sequence numbers of idempotent producers, instead of the plan.",
)
@show_option("rows")
@table_format_option
@processes_option
def recover(
    log_dirs: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    shutdown: str,
    index_interval_bytes: int,
    with_all: bool,
    table: str,
    show: int,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """Tell what a broker would do to LOG_DIR at its next start, and what that would cost."""
    from kafkalog.schemas import table_fields
    from kafkalog.storage.log_dir.other_entries import absent_lines

    logs = logs_of_topics(log_dirs, topics, partitions)
    asked = {
        "shutdown": shutdown,
        "indexIntervalBytes": str(index_interval_bytes),
        "nowMs": str(time.time_ns() // 1_000_000),
    }
    names = tuple(field["name"] for field in table_fields(table))
    rows = _rows(log_dirs, logs, table, names, asked, processes)
    for line in absent_lines(log_dirs, logs, topics, partitions):
        tell(line)
    is_text = table_format == "text"
    found, verdict = _judged(rows, table)
    shown = found if is_text and not with_all else rows
    columns = _TEXT_COLUMNS[table] if is_text else names
    cells = table_rows(shown, columns, table_format)
    write_findings(columns, cells, table_format, show=show, noun="row")
    return write_verdict(verdict, table_format, has_findings=bool(found))


def _rows(
    log_dirs: Sequence[str],
    logs: list[PartitionLog],
    table: str,
    names: tuple[str, ...],
    asked: Mapping[str, str],
    processes: int | None,
) -> list[_Row]:
    from kafkalog.command_line.views import plain_rows, reduced_view, view_options

    size = bytes_in(logs)
    with progress_bar(size, "reading") as bar:
        found = reduced_view(
            view_options(log_dirs, table, **asked),
            names,
            plain_rows,
            processes=processes_for(size, processes),
            found=logs,
            on_done=bar.update,
        )
        return list(found)


def _judged(rows: Sequence[_Row], table: str) -> tuple[list[_Row], str]:
    """The rows that are findings, and the verdict."""
    from kafkalog.inspection.partitions.recovery_totals import RecoveryTotals, is_finding

    if table == _PLAN:
        return [row for row in rows if is_finding(row)], RecoveryTotals.of(rows).words()
    if not rows:
        return [], "no irregular sequence numbers"
    return list(rows), f"{counted(len(rows), 'batch')} with irregular sequence numbers"
