"""A task's half of a read: a segment's file into Arrow record batches of the requested columns.

1. The plan is complete: a task lists no directory, and opens the file of its segment alone, and
   what the plan names beside it.
2. Rows come in the order of the file, in batches of a bounded number of rows.
3. A row has the requested columns, of the view's schema, and no others.
4. Only records between the offsets of the plan are rows; control records where the view has them.
5. Bytes that cannot become rows are reported once, with position and offsets: as an error where
   the mode is FAILFAST, else in the log.
6. A segment that a broker renames meanwhile is found under its new name; one that is deleted is
   named and left out.
7. Memory does not grow with the segment.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Protocol

import pyarrow as pa

from kafkalog.columns.batches.segment_batches import SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.filled_records import FilledRecords
from kafkalog.columns.records.oldest_records import OldestRecords
from kafkalog.columns.records.segment_reader import (
    SegmentBatchRows,
    SegmentByteRanges,
    SegmentRecords,
)
from kafkalog.columns.table_rows import TableRow, table_batch
from kafkalog.columns.transactions.transaction_outcomes import (
    TransactionOutcomes,
    transaction_outcomes,
)
from kafkalog.coordination.groups.group_records import LatestRecords
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan
from kafkalog.inspection.groups.group_metadata import (
    COORDINATOR_COLUMNS,
    group_rows,
    transaction_state_rows,
)
from kafkalog.inspection.groups.messages import MessageColumns
from kafkalog.log_lines import logger
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.log_dir.log_dir import with_segments_of_now
from kafkalog.storage.names import oldest_base_offset
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.index_lookup import start_position
from kafkalog.storage.reading.log_bounds import recorded_end
from kafkalog.storage.reading.offset_ranges import report_data_loss
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.storage.reading.renamed_files import note_deleted_segment, opened, opened_segment
from kafkalog.views.options.options import Mode, ReadOptions, View
from kafkalog.views.reading.segment_damage import SegmentDamage, report_missing_end

_logger = logger(__name__)

ROWS_PER_BATCH = 4096


class BatchTables(Protocol):
    """Goes along where the records of whole segments are read."""

    def take(self, table: LongArray) -> None:
        """Take the next batches, with all their faults."""
        ...

    def end_segment(self) -> None:
        """Know that there are no more in a segment's file."""
        ...


@dataclass
class ViewRead:
    """The read of one segment into the requested view: `file` is now at `path`. `log_end` is where
    the log ends, once all rows were taken. `tables` go along a read of records."""

    file: InputFile
    segment: SegmentRead
    options: ReadOptions
    columns: tuple[str, ...]
    chosen_offsets: LongArray | None = None
    log_end: int = 0
    tables: BatchTables | None = None

    @property
    def path(self) -> str:
        return self.file.path

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in the order of the file."""
        is_oldest = oldest_base_offset(os.path.basename(self.path)) is not None
        view = _oldest_records if is_oldest else _VIEWS[self.options.view]
        return view(self)

    def segment_options(self, start_position: int | None = None) -> SegmentOptions:
        """Return how the segment is read; from `start_position` on, if it is given."""
        options = SegmentOptions.of_read(
            self.segment,
            timestamps=self.options.timestamps,
            check_crcs=self.options.check_crcs,
            max_batch_bytes=self.options.max_batch_bytes,
            has_value_bytes=self.options.has_value_bytes,
        )
        if start_position is None:
            return options
        return replace(options, start_position=start_position, chosen_offsets=self.chosen_offsets)

    @property
    def constants(self) -> dict[str, str | int | None]:
        segment = self.segment
        return {"topic": segment.topic, "partition": segment.partition, "file": self.path}

    @property
    def range_constants(self) -> dict[str, str | int | None]:
        """Columns of view `byte_ranges` with one value for the whole segment."""
        segment = self.segment
        return {
            **self.constants,
            "cluster_id": segment.cluster_id,
            "broker_id": segment.broker_id,
            "input_path": segment.input_path,
            "file_size": self.file.size,
            "segment_base_offset": segment.base_offset,
            "is_last_segment": segment.next_base_offset is None,
        }


def read_segment(
    segment: SegmentRead,
    options: ReadOptions,
    columns: tuple[str, ...],
    *,
    chosen_offsets: LongArray | None = None,
    tables: BatchTables | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one segment in the requested view. Batches without one of `chosen_offsets`,
    which rise, are passed over, and other records can be. `tables` go along, but of a segment that
    was deleted.

    Rules: docs/format.md F950 and F951.
    """
    try:
        file = opened(segment.path)
    except FileNotFoundError:
        _report_deleted(segment, options)
        if options.mode is not Mode.FAILFAST:
            file = opened_segment(segment)
            yield from ViewRead(file, segment, options, columns, chosen_offsets).rows()
        return
    with file:
        read = ViewRead(file, segment, options, columns, chosen_offsets, tables=tables)
        yield from read.rows()
    requested = max(segment.requested_start or 0, segment.requested_end or 0)
    if requested > read.log_end:
        report_data_loss(
            f"offset {requested} of {segment.topic}-{segment.partition} is not in the log, "
            f"which holds {segment.log_start} up to {read.log_end}",
            fail=options.offsets.fail_on_data_loss,
        )


def _report_deleted(segment: SegmentRead, options: ReadOptions) -> None:
    """Do what `failOnDataLoss` and `mode` say with a segment that was deleted."""
    message = (
        f"{segment.path} no longer exists on {socket.gethostname()}, nor under another "
        "name: deleted by retention or compaction since the read was planned, or never here"
    )
    report_data_loss(message, fail=options.fails_on_deleted)
    note_deleted_segment(segment)


def report_damage_behind(log: PartitionLog, log_end: int, options: ReadOptions) -> None:
    """Do what `mode` says with damage after the last sound batch of a log, and with an end that
    is missing: they held the newest records. A read that ends at the log end does not get there."""
    if not log.segments:
        report_lost_log(log, LARGEST_OFFSET, options)
        return
    segment = log.segments[-1]
    damage = SegmentDamage(segment.path, options.mode)
    requested = SegmentOptions.of(segment, first_offset=log_end)
    try:
        file = opened(segment.path)
    except FileNotFoundError:
        note_deleted_segment(segment)
        return
    with file:
        SegmentRecords(FileWindow(file), requested, (), {}, damage.report).check()
        report_missing_end(recorded_end(log), log_end, LARGEST_OFFSET, file.size, damage)
    damage.summarise()


def report_lost_log(log: PartitionLog, requested_end: int, options: ReadOptions) -> None:
    """Do what `mode` says where no segment of a log is left, and so nothing that is read."""
    damage = SegmentDamage(log.path, options.mode)
    report_missing_end(recorded_end(log), log.log_start, requested_end, 0, damage)
    damage.summarise()


def _records(
    read: ViewRead, columns: tuple[str, ...] | None = None, *, with_control_records: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the records with these columns, None for those that were requested."""
    segment, window = read.segment, FileWindow(read.file)
    columns = read.columns if columns is None else columns
    damage = SegmentDamage(read.path, read.options.mode)
    begins = segment.start_position or start_position(read.path, segment.first_offset)
    options = read.segment_options(begins)
    constants = {**read.constants, "brokerId": segment.broker_id}
    tables = read.tables
    walk = None if tables is None else SegmentBatches(window, options)
    records: SegmentRecords | FilledRecords
    with _outcomes(read) as outcomes:
        if segment.filling is None:
            records = own = SegmentRecords(
                window,
                options,
                columns,
                constants,
                damage.report,
                with_control_records=with_control_records,
                outcomes=outcomes,
                walk=walk,
            )
            rows = own.rows() if walk is None or tables is None else _along(tables, walk, own)
        else:
            records = FilledRecords(
                window,
                options,
                columns,
                constants,
                segment.filling,
                damage.report,
                damage.filled,
                with_control_records=with_control_records,
                outcomes=outcomes,
            )
            rows = records.rows()
        yield from rows
    read.log_end = records.log_end
    if read.options.timestamps is None:
        found_end = max(read.log_end, segment.first_offset)
        report_missing_end(segment.recorded_end, found_end, segment.end_offset, window.size, damage)
    damage.summarise()


def _along(
    tables: BatchTables, walk: SegmentBatches, records: SegmentRecords
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a walk that tables go along."""
    for chunk in walk.chunks():
        yield from records.of_chunk(chunk)
        tables.take(chunk.table)
    records.end()
    tables.end_segment()


def _outcomes(read: ViewRead) -> AbstractContextManager[TransactionOutcomes | None]:
    """Return what became of the segment's transactions, if only committed records are wanted."""
    segment, committed = read.segment, read.segment.committed
    if committed is None:
        return nullcontext()
    logs = [
        (with_segments_of_now(log) if number else _log_of_now(log, segment, read.path), end)
        for number, (log, end) in enumerate(committed.logs)
    ]
    end = segment.end_offset if segment.next_base_offset is None else segment.next_base_offset
    requested = OffsetSpan(max(segment.base_offset or 0, segment.first_offset), end)
    return transaction_outcomes(
        logs, requested, committed.end_offset, check_crcs=read.options.check_crcs
    )


def _log_of_now(log: PartitionLog, segment: SegmentRead, path: str) -> PartitionLog:
    """Return the log with the segment whose file is now at `path`, and those that follow it. Its
    directory may have been renamed since the read was planned, its file as well, or cleaned
    together with others."""
    own = next((found for found in log.segments if found.path == path), None) or SegmentFile(
        path, segment.base_offset, segment.next_base_offset, segment.size, segment.input_path
    )
    now = log
    if not log.segments:
        now = with_segments_of_now(replace(log, path=os.path.dirname(path)))
    next_base = segment.next_base_offset or (segment.base_offset or 0) + 1
    later = (found for found in now.segments if (found.base_offset or 0) >= next_base)
    return replace(now, segments=(own, *later))


def _messages(read: ViewRead) -> Iterator[pa.RecordBatch]:
    segment = read.segment
    constants = {
        "cluster_id": segment.cluster_id,
        "input_path": segment.input_path,
        "topic": segment.topic,
        "partition": segment.partition,
    }
    messages = MessageColumns(
        segment.topic or "", read.columns, constants, show_secrets=read.options.show_secrets
    )
    for records in _records(read, messages.record_columns, with_control_records=True):
        yield from messages.batches(records)


def _coordinator_rows(read: ViewRead) -> Iterator[pa.RecordBatch]:
    constants = {
        "cluster_id": read.segment.cluster_id,
        "input_path": read.segment.input_path,
        "internal_partition": read.segment.partition,
    }
    view = read.options.view
    rows_of = group_rows if view is View.GROUP_METADATA else transaction_state_rows
    found = _records(read, COORDINATOR_COLUMNS, with_control_records=True)
    if read.options.latest:
        latest = LatestRecords(read.options.as_of_ms or None)
        for row in chain.from_iterable(map(rows_of, found)):
            latest.add({**constants, **row})
        yield from _row_batches(read, iter(latest.records()), constants)
        return
    for records in found:
        yield from _row_batches(read, rows_of(records), constants)


def _row_batches(
    read: ViewRead, rows: Iterator[TableRow], constants: Mapping[str, str | int | None]
) -> Iterator[pa.RecordBatch]:
    while some := list(islice(rows, ROWS_PER_BATCH)):
        yield table_batch(read.options.view.value, some, constants, read.columns)


def _oldest_records(read: ViewRead) -> Iterator[pa.RecordBatch]:
    damage = SegmentDamage(read.path, read.options.mode)
    records = OldestRecords(
        FileWindow(read.file),
        read.segment_options(),
        read.columns,
        {**read.constants, "brokerId": read.segment.broker_id},
        damage.report,
    )
    yield from records.rows()
    read.log_end = records.log_end
    damage.summarise()


def _batches(read: ViewRead) -> Iterator[pa.RecordBatch]:
    # All damage is shown: the walk begins where the file does.
    batches = SegmentBatchRows(
        FileWindow(read.file), read.segment_options(), read.columns, read.constants
    )
    yield from batches.rows()
    read.log_end = batches.log_end


def _byte_ranges(read: ViewRead) -> Iterator[pa.RecordBatch]:
    segment, window = read.segment, FileWindow(read.file)
    constants = read.range_constants
    ranges = SegmentByteRanges(
        window,
        read.segment_options(),
        is_compacted=segment.is_compacted,
        recorded_end=segment.recorded_end,
    )
    is_all = read.options.view is View.BYTE_RANGES
    rows = (row for row in ranges.rows() if is_all or row.get("kind") is not None)
    while some := list(islice(rows, ROWS_PER_BATCH)):
        yield table_batch("byte_ranges", some, constants, read.columns)
    read.log_end = ranges.log_end


_VIEWS: dict[View, Callable[[ViewRead], Iterator[pa.RecordBatch]]] = {
    View.RECORDS: _records,
    View.MESSAGES: _messages,
    View.OFFSET_COMMITS: partial(_records, with_control_records=True),
    View.GROUP_METADATA: _coordinator_rows,
    View.TRANSACTION_STATES: _coordinator_rows,
    View.BATCHES: _batches,
    View.BYTE_RANGES: _byte_ranges,
    View.FAULTS: _byte_ranges,
}
