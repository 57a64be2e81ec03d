"""The fast reader's front: one segment, as any of the views, an Arrow record batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property

import numpy as np
import pyarrow as pa

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.byte_ranges import ByteRange, ByteRanges, SegmentFacts
from kafkalog.columns.batches.fault_details import FaultyRange, faulty_range
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.segment_walk import may_begin_at
from kafkalog.columns.batches.window import MemoryWindow, Window
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.batch_columns import CHECKSUM_COLUMNS, DEEP_COLUMNS, BatchColumns
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.columns.records.sound_batches import checked_chunks
from kafkalog.columns.transactions.transaction_outcomes import TransactionOutcomes
from kafkalog.format.faults import Fault
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.storage.reading.log_bounds import RecordedEnd

Constants = Mapping[str, str | int | None]
OnFault = Callable[[FaultyRange], None]


@cache
def load_kernels() -> None:
    """Load the machine code that nearly every read of a segment calls, so that forks have it."""
    batch = write_batch([Record(0, 0, 0, None, b"")])
    window = MemoryWindow(np.frombuffer(bytearray(batch), dtype=np.uint8))
    for _ in SegmentBatchRows(
        window, SegmentOptions(0), ("uncompressed_size", "computed_crc"), {}
    ).rows():
        pass


class SegmentRecords:
    """The records of a segment's sound batches with the given columns of view `records`.

    `constants` are columns with one value for the whole segment, such as the topic. `on_fault` is
    called with every damaged range that may have held requested offsets, and may raise. With
    `outcomes`, records of aborted transactions are left out. With a `walk` of the segment that
    others go along, take `of_chunk` of each chunk, then `end`.
    """

    def __init__(
        self,
        window: Window,
        options: SegmentOptions,
        columns: Sequence[str],
        constants: Constants,
        on_fault: OnFault,
        *,
        with_control_records: bool = False,
        outcomes: TransactionOutcomes | None = None,
        walk: SegmentBatches | None = None,
    ) -> None:
        self._records = RecordColumns(
            options,
            columns,
            constants,
            with_control_records=with_control_records,
            outcomes=outcomes,
            by_headers=options.check_crcs and walk is None,
        )
        self._on_fault = on_fault
        self._faults = _RequestedFaults(window, options)
        self._batches = SegmentBatches(window, options) if walk is None else walk

    @property
    def log_end(self) -> int:
        """Return the offset after the last sound batch, or after the last that had to be read, once
        all rows were taken."""
        return self._batches.next_offset

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the records, in the order of the file."""
        for chunk in self._batches.chunks():
            yield from self.of_chunk(chunk)
        self.end()

    def of_chunk(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """Yield the records of a chunk."""
        yield from self._records.batches(chunk)
        self._report(self._faults.of(chunk.table))

    def end(self) -> None:
        """Call `on_fault` with what only the end of the segment decides."""
        self._report(self._faults.at_end())

    def check(self) -> None:
        """Call `on_fault` as `rows` does, and make no records."""
        for chunk in self._batches.chunks():
            self._records.check(chunk)
            self._report(self._faults.of(chunk.table))
        self.end()

    def _report(self, faults: Iterator[FaultyRange]) -> None:
        for fault in faults:
            self._on_fault(fault)


# Report this many faults in a row without waiting for the next sound batch.
_MOST_OPEN_FAULTS = 1000


class _RequestedFaults:
    """Picks the faults that concern the requested offsets and, if read in parts, this part.

    Only the sound batches around damage show which offsets it held; its own header cannot be
    trusted. The part that has the first requested offset which the damage may have held reports it.
    A part that is already after its own end when it comes to the start of the next part reports
    what lies before, which no other part does. Rule: docs/options.md F501.
    """

    def __init__(self, window: Window, options: SegmentOptions) -> None:
        self._window = window
        self._options = options
        requested = options.requested_offset
        self._requested_offset = options.first_offset if requested is None else requested
        self._open: list[list[int]] = []

    def of(self, table: LongArray) -> Iterator[FaultyRange]:
        if not self._open and not table[:, column.FAULT].any():
            return
        for row in table.tolist():
            if row[column.FAULT] != Fault.NONE:
                self._open.append(row)
            elif self._open:
                yield from self._settled(row[column.BASE_OFFSET])
            if len(self._open) == _MOST_OPEN_FAULTS:
                yield from self.at_end()

    def at_end(self) -> Iterator[FaultyRange]:
        yield from self._settled(self._options.end_offset)

    def _settled(self, next_offset: int) -> Iterator[FaultyRange]:
        for row in self._open:
            if next_offset > self._requested_offset and self._is_own(row):
                yield self._faulty(row)
        self._open.clear()

    def _is_own(self, row: list[int]) -> bool:
        options = self._options
        if max(row[column.EXPECTED_OFFSET], self._requested_offset) < options.end_offset:
            return options.is_first_to_tell(row[column.EXPECTED_OFFSET])
        return row[column.POSITION] < (options.next_position or 0) and self._next_part_begins

    @cached_property
    def _next_part_begins(self) -> bool:
        """Whether the next part begins where it should, not at the start of the file."""
        part = self._options.next_part
        return part is not None and may_begin_at(self._window, part) is not None

    def _faulty(self, row: list[int]) -> FaultyRange:
        ends_file = row[column.POSITION] + row[column.SIZE] == self._window.size
        ends_log = ends_file and self._options.next_base_offset is None
        return faulty_range(row, self._window.unreadable, ends_log=ends_log)


class SegmentBatchRows:
    """The batches of a segment that hold requested offsets, and all that are not sound, with the
    given columns of view `batches`.

    Payloads are decompressed only for the columns that need it, and read at all only for those or
    for checksums.
    """

    def __init__(
        self, window: Window, options: SegmentOptions, columns: Sequence[str], constants: Constants
    ) -> None:
        self._options = options
        self._rows = BatchColumns(columns, constants)
        self._is_deep = bool(DEEP_COLUMNS & set(columns))
        self._records = RecordColumns(options, (), {}, with_control_records=True)
        reads_payload = self._is_deep or (options.check_crcs and CHECKSUM_COLUMNS & set(columns))
        self._batches = (SegmentBatches if reads_payload else SegmentHeaders)(window, options)

    @property
    def log_end(self) -> int:
        """As `SegmentRecords.log_end`."""
        return self._batches.next_offset

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, in the order of the file."""
        for chunk in self._batches.chunks():
            if self._is_deep:
                self._records.check(chunk)
            batch = self._rows.batch(_requested_or_faulty(chunk.table, self._options))
            if batch is not None:
                yield batch


def _requested_or_faulty(table: LongArray, options: SegmentOptions) -> LongArray:
    is_requested = (table[:, column.LAST_OFFSET] >= options.first_offset) & (
        first_offsets(table) < options.end_offset
    )
    requested: LongArray = table[is_requested | (table[:, column.FAULT] != Fault.NONE)]
    return requested


class SegmentByteRanges:
    """The account of all bytes of a segment; of a log's last one, with what is missing up to its
    recorded end."""

    def __init__(
        self,
        window: Window,
        options: SegmentOptions,
        *,
        is_compacted: bool,
        recorded_end: RecordedEnd | None = None,
    ) -> None:
        facts = SegmentFacts(
            window.size,
            window.unreadable,
            options.base_offset,
            options.next_base_offset,
            is_compacted,
            recorded_end,
        )
        self._ranges = ByteRanges(facts)
        self._options = options
        self._batches = SegmentBatches(window, options)

    @property
    def log_end(self) -> int:
        """As `SegmentRecords.log_end`."""
        return self._batches.next_offset

    def rows(self) -> Iterator[ByteRange]:
        """Yield the ranges, in the order of the file."""
        for chunk in checked_chunks(self._batches, self._options):
            yield from self._ranges.rows(chunk.table)
        yield from self._ranges.last_rows()
