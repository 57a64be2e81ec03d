"""`kafkalog salvage`: a new log directory with everything that is intact in a damaged one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_options,
    exit_code,
    save_tables,
    write_answer,
    write_verdict,
)
from kafkalog.command_line.inputs import logs_of_topics
from kafkalog.command_line.terminal import print_note
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.partition_log import bytes_in
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.recovery_options import SalvageRequest, salvage_options
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.views.progress import progress_bar

if TYPE_CHECKING:
    from kafkalog.inspection.partitions.salvage import SalvageSettings
    from kafkalog.storage.partition_log import PartitionLog

_LOST, _SALVAGED = "lost_ranges", "salvage"
_TABLES = {"range": _LOST, "partition": _SALVAGED}
_TEXT_COLUMNS = {
    _LOST: (
        *("topic", "partition", "kind", "length", "first_offset", "last_offset"),
        *("file", "position", "detail"),
    ),
    _SALVAGED: (
        *("topic", "partition", "records", "kept_bytes", "lost_bytes", "doubtful_batches"),
        *(
            "log_start_offset",
            "log_end_offset",
            "broker_starts",
            "topic_id",
            "directory",
            "start_error",
        ),
    ),
}
_Row = Mapping[str, Any]

_EPILOG = f"""\
{shared.PATHS_MEANING}
Give one log directory, or partitions of one. The new directory has every intact batch under its old
offset, and the files that a broker needs beside the logs. It appears when it is complete: an
interrupted run leaves nothing. Findings are ranges of a log that are not in the new directory. See
docs/recovery.md.

\b
Examples:
  kafkalog salvage /mnt/damaged/kafka-logs --to /mnt/new/kafka-logs
  kafkalog salvage /mnt/damaged/kafka-logs --to /mnt/new/kafka-logs --topic orders
  kafkalog salvage /mnt/damaged/kafka-logs --to /mnt/new/kafka-logs --format json > lost.json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.new_log_dir_option
@shared.topic_option()
@shared.partition_option()
@salvage_options
@answer_options(
    tuple(_TABLES),
    "Print a row per range that is not in the new directory, or a row per partition.",
)
@shared.processes_option
def salvage(
    paths: Sequence[str],
    target: str,
    topics: Sequence[str],
    partitions: Sequence[int],
    by: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
    request: SalvageRequest,
) -> ExitCode:
    """Write a new log directory with everything that is intact in a damaged one."""
    from kafkalog.inspection.metadata.current_topics import find_logs
    from kafkalog.inspection.partitions.salvaged_logs import SalvageTotals, lost_rows
    from kafkalog.storage.log_dir.other_entries import absent_lines
    from kafkalog.storage.writing.salvaged_log_dir import left_out_lines, salvageable
    from kafkalog.views.engine import RowsInMemory

    table, table_format = _TABLES[by], output.table_format
    names = answer_columns(table, _TEXT_COLUMNS[table], table_format)
    found = find_logs(paths, strict=False)
    logs = logs_of_topics(paths, topics, partitions, found)
    _refuse_inputs(paths, logs, target)
    place = output.tables_of_logs(_TEXT_COLUMNS, paths, found, [target])
    absent = [*absent_lines(paths, logs, topics, partitions)]
    chosen = salvageable(logs)
    rows = _salvaged(
        chosen, target, request.settings(chosen, found, time.time_ns() // 1_000_000), processes
    )
    left_out = () if topics or partitions else left_out_lines(logs)
    for line in (*absent, *left_out):
        print_note(line)
    totals = SalvageTotals.of(rows)
    lost = [*lost_rows(rows)]
    shown = rows if table == _SALVAGED else lost
    write_answer(names, shown, table_format, show=show)
    write_verdict(totals.words(target), table_format, has_findings=totals.has_findings)
    save_tables(
        place,
        {name: RowsInMemory.of(name, each) for name, each in ((_SALVAGED, rows), (_LOST, lost))},
    )
    return exit_code(has_findings=totals.has_findings, fails=fail_on_findings)


def _refuse_inputs(paths: Sequence[str], logs: list[PartitionLog], target: str) -> None:
    from kafkalog.storage.log_dir.log_dir import input_entries
    from kafkalog.storage.log_dir.read_directories import directories_read, refuse_inside

    inputs = [entry for path in paths for entry in input_entries(path)]
    refuse_inside("--to", target, directories_read(inputs, logs))


def _salvaged(
    logs: list[PartitionLog], target: str, settings: SalvageSettings, processes: int | None
) -> list[_Row]:
    """Write the new directory; the rows of table `salvage`."""
    from kafkalog.columns.table_rows import table_batch
    from kafkalog.inspection.partitions.salvaged_logs import finish_salvage, salvaged_log
    from kafkalog.storage.files.whole_directory import whole_directory

    size = bytes_in(logs)
    with whole_directory(target, os.fsync) as scratch, progress_bar(size, "salvaging") as bar:

        def rows_of(log: PartitionLog) -> Iterator[_Row]:
            row = salvaged_log(log, scratch, target, settings)
            yield from table_batch(_SALVAGED, [row], {}).to_pylist()

        found = in_order(
            rows_of,
            logs,
            processes=processes_for(size, processes),
            on_done=lambda log: bar.update(bytes_in([log])),
        )
        with closing(found):
            rows = list(found)
        finish_salvage(logs[0].log_dir.path, scratch, rows)
    return rows
