"""One walk over a segment for several views of it: each byte is read, and each payload
decompressed, once. The rows of each view are those of a walk of its own.

A view goes along only where it would read the whole segment as it lies in its file: no part of it,
nothing that other replicas fill in, and no outcomes of transactions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.byte_ranges import ByteRange, ByteRanges, SegmentFacts
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.batch_columns import DEEP_COLUMNS, BatchColumns
from kafkalog.columns.records.record_columns import PAYLOAD_COLUMNS, RecordColumns
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.columns.table_rows import table_batch
from kafkalog.format.batch_header import CONTROL_BIT
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.storage.names import oldest_base_offset
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.storage.reading.renamed_files import opened
from kafkalog.views.options.options import ReadOptions, View
from kafkalog.views.reading.reading import ROWS_PER_BATCH, ViewRead, read_segment
from kafkalog.views.reading.segment_damage import SegmentDamage, report_missing_end

# Rows of a view with its number.
_Numbered = tuple[int, pa.RecordBatch]


class WantedView(NamedTuple):
    """A view that goes along a walk: the source's options for it, and its columns."""

    options: ReadOptions
    columns: tuple[str, ...]

    @property
    def can_share(self) -> bool:
        """Whether a walk that decodes every record has all that the view needs."""
        view, columns = self.options.view, set(self.columns)
        if view is View.BATCHES:
            return bool(DEEP_COLUMNS & columns)
        if view is View.RECORDS:
            # Others are taken from headers, also where the records are damaged.
            return bool(PAYLOAD_COLUMNS & columns) and self.options.timestamps is None
        return view is View.BYTE_RANGES


@dataclass(frozen=True, slots=True)
class SharedRead:
    """A segment's reads for several views, by the number of the view. One is view `byte_ranges`,
    which has all bytes."""

    reads: Mapping[int, SegmentRead]

    @property
    def size(self) -> int:
        return sum(read.size for read in self.reads.values())


def is_whole(read: SegmentRead) -> bool:
    """Return whether a read is of all that a segment's file has."""
    return (
        read.base_offset is not None
        and oldest_base_offset(os.path.basename(read.path)) is None
        and read.first_offset <= read.base_offset
        and read.end_offset == LARGEST_OFFSET
        and not (read.start_position or read.next_position)
        and read.requested_start is None
        and read.requested_end is None
        and read.filling is None
        and read.committed is None
    )


def read_shared(shared: SharedRead, wanted: Sequence[WantedView]) -> Iterator[_Numbered]:
    """Yield the rows of the views, each batch with the number of its view in `wanted`."""
    path = next(iter(shared.reads.values())).path
    try:
        file = opened(path)
    except FileNotFoundError:
        # Each view says what it lacks.
        for number, read in shared.reads.items():
            yield from ((number, batch) for batch in read_segment(read, *wanted[number]))
        return
    with file:
        views = {
            wanted[number].options.view: (number, ViewRead(file, read, *wanted[number]))
            for number, read in shared.reads.items()
        }
        yield from _Walk(views).rows()


class _Walk:
    """The walk over an opened segment."""

    def __init__(self, views: Mapping[View, tuple[int, ViewRead]]) -> None:
        self._views = views
        _, self._ranges = views[View.BYTE_RANGES]
        self._window = FileWindow(self._ranges.file)
        options = self._ranges.segment_options()
        self._batches = SegmentBatches(self._window, options)
        # Control batches have no records in view `records`; all others are decoded for it.
        self._checks = RecordColumns(options, (), {}, with_control_records=True)
        self._waiting: list[ByteRange] = []

    def rows(self) -> Iterator[_Numbered]:
        """Yield the rows of the views."""
        ranges, records = self._account(), self._records()
        for chunk in self._batches.chunks():
            yield from self._checked(chunk, records)
            yield from self._of_batches(chunk)
            self._waiting += ranges.rows(chunk.table)
            if len(self._waiting) >= ROWS_PER_BATCH:
                yield from self._of_ranges()
        if records is not None:
            self._end_records(records)
        self._waiting += ranges.last_rows()
        yield from self._of_ranges()

    def _account(self) -> ByteRanges:
        segment, window = self._ranges.segment, self._window
        return ByteRanges(
            SegmentFacts(
                window.size,
                window.unreadable,
                segment.base_offset,
                segment.next_base_offset,
                segment.is_compacted,
                segment.recorded_end,
            )
        )

    def _records(self) -> _Records | None:
        if View.RECORDS not in self._views:
            return None
        number, read = self._views[View.RECORDS]
        damage = SegmentDamage(read.path, read.options.mode)
        constants = {**read.constants, "brokerId": read.segment.broker_id}
        reader = SegmentRecords(
            self._window,
            read.segment_options(),
            read.columns,
            constants,
            damage.report,
            walk=self._batches,
        )
        return _Records(number, reader, damage)

    def _checked(self, chunk: Chunk, records: _Records | None) -> Iterator[_Numbered]:
        """Yield the records of a chunk, if they are wanted, and set the faults of all batches."""
        if records is None:
            self._checks.check(chunk)
            return
        table = chunk.table
        is_control = (table[:, column.MAGIC] == 2) & (
            table[:, column.ATTRIBUTES] & CONTROL_BIT != 0
        )
        is_control &= table[:, column.FAULT] == Fault.NONE
        control = chunk.of_rows(is_control)
        # Before the records, which can take the bytes of the chunk with them.
        self._checks.check(control)
        yield from ((records.number, batch) for batch in records.reader.of_chunk(chunk))
        table[is_control] = control.table

    def _of_batches(self, chunk: Chunk) -> Iterator[_Numbered]:
        if View.BATCHES in self._views:
            number, read = self._views[View.BATCHES]
            batch = BatchColumns(read.columns, read.constants).batch(chunk.table)
            if batch is not None:
                yield number, batch

    def _of_ranges(self) -> Iterator[_Numbered]:
        number, read = self._views[View.BYTE_RANGES]
        if self._waiting:
            rows = self._waiting
            yield number, table_batch("byte_ranges", rows, read.range_constants, read.columns)
            self._waiting = []

    def _end_records(self, records: _Records) -> None:
        records.reader.end()
        _, read = self._views[View.RECORDS]
        segment, log_end = read.segment, records.reader.log_end
        found_end = max(log_end, segment.first_offset)
        report_missing_end(
            segment.recorded_end, found_end, segment.end_offset, self._window.size, records.damage
        )
        records.damage.summarise()


class _Records(NamedTuple):
    number: int
    reader: SegmentRecords
    damage: SegmentDamage
