"""The fast reader's front: one segment, as any of the views, an Arrow record batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cached_property

import pyarrow as pa

from kafkalog.columns.batches.batch_table import (
    BASE_OFFSET,
    EXPECTED_OFFSET,
    FAULT,
    LAST_OFFSET,
    POSITION,
    SIZE,
    first_offsets,
)
from kafkalog.columns.batches.byte_ranges import ByteRange, ByteRanges, SegmentFacts
from kafkalog.columns.batches.fault_details import FaultyRange, faulty_range
from kafkalog.columns.batches.segment_batches import SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.walk_start import may_begin_at
from kafkalog.columns.batches.window import Window
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.batch_columns import CHECKSUM_COLUMNS, DEEP_COLUMNS, BatchColumns
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.columns.transactions.transaction_outcomes import TransactionOutcomes
from kafkalog.format.faults import Fault
from kafkalog.storage.reading.log_bounds import ToldEnd

Constants = Mapping[str, str | int | None]
OnFault = Callable[[FaultyRange], None]


def read_segment_columns(
    window: Window,
    options: SegmentOptions,
    columns: Sequence[str],
    constants: Constants,
    on_fault: OnFault,
    *,
    with_control_records: bool = False,
    outcomes: TransactionOutcomes | None = None,
) -> Generator[pa.RecordBatch, None, int]:
    """The records of the segment's sound batches with the given columns of view `records`.

    `constants` are columns with one value for the whole segment, such as the topic. Every damaged
    range that may have held asked offsets is told to `on_fault`, which may raise. With `outcomes`,
    records of aborted transactions are left out. Returns the offset after the last sound batch, or
    after the last that had to be looked at.
    """
    records = RecordColumns(
        options,
        columns,
        constants,
        with_control_records=with_control_records,
        outcomes=outcomes,
        by_headers=options.check_crcs,
    )
    faults = _AskedFaults(window, options)
    batches = SegmentBatches(window, options)
    for chunk in batches.chunks():
        yield from records.batches(chunk)
        for fault in faults.of(chunk.table):
            on_fault(fault)
    for fault in faults.at_end():
        on_fault(fault)
    return batches.next_offset


# So many faults in a row are told without waiting for what comes behind them.
_MOST_OPEN_FAULTS = 1000


class _AskedFaults:
    """Picks the faults that concern what is asked and, where that is read in parts, this part.

    What offsets damage held shows only by the sound batches around it: its own header is part of
    what cannot be believed. Of several parts the one tells of it that has the first asked offset
    which it may have held. A part that stands behind its own end when it comes to where the next
    one begins tells of what lies before: nobody else does. Rule: docs/options.md F501.
    """

    def __init__(self, window: Window, options: SegmentOptions) -> None:
        self._window = window
        self._options = options
        asked = options.asked_offset
        self._asked_offset = options.first_offset if asked is None else asked
        self._open: list[list[int]] = []

    def of(self, table: LongArray) -> Iterator[FaultyRange]:
        if not self._open and not table[:, FAULT].any():
            return
        for row in table.tolist():
            if row[FAULT] != Fault.NONE:
                self._open.append(row)
            elif self._open:
                yield from self._settled(row[BASE_OFFSET])
            if len(self._open) == _MOST_OPEN_FAULTS:
                yield from self.at_end()

    def at_end(self) -> Iterator[FaultyRange]:
        yield from self._settled(self._options.end_offset)

    def _settled(self, next_offset: int) -> Iterator[FaultyRange]:
        for row in self._open:
            if next_offset > self._asked_offset and self._is_own(row):
                yield self._faulty(row)
        self._open.clear()

    def _is_own(self, row: list[int]) -> bool:
        options = self._options
        if max(row[EXPECTED_OFFSET], self._asked_offset) < options.end_offset:
            return options.is_first_to_tell(row[EXPECTED_OFFSET])
        return row[POSITION] < (options.next_position or 0) and self._next_part_begins

    @cached_property
    def _next_part_begins(self) -> bool:
        """Whether the next part begins where it should, not at the start of the file."""
        part = self._options.next_part
        return part is not None and may_begin_at(self._window, part) is not None

    def _faulty(self, row: list[int]) -> FaultyRange:
        ends_file = row[POSITION] + row[SIZE] == self._window.size
        ends_log = ends_file and self._options.next_base_offset is None
        return faulty_range(row, self._window.unreadable, ends_log=ends_log)


def read_batches(
    window: Window, options: SegmentOptions, columns: Sequence[str], constants: Constants
) -> Generator[pa.RecordBatch, None, int]:
    """The batches of the segment that hold asked offsets, and all that are not sound, with the
    given columns of view `batches`.

    Payloads are decompressed only for the columns that need it, and read at all only for those or
    for checksums. Returns as `read_segment_columns` does.
    """
    batches = BatchColumns(columns, constants)
    is_deep = bool(DEEP_COLUMNS & set(columns))
    records = RecordColumns(options, (), {}, with_control_records=True)
    reads_payload = is_deep or (options.check_crcs and CHECKSUM_COLUMNS & set(columns))
    walk = SegmentBatches if reads_payload else SegmentHeaders
    walked = walk(window, options)
    for chunk in walked.chunks():
        if is_deep:
            for _ in records.batches(chunk):
                pass  # only what it finds out about the batches is of interest
        batch = batches.batch(_asked_or_faulty(chunk.table, options))
        if batch is not None:
            yield batch
    return walked.next_offset


def _asked_or_faulty(table: LongArray, options: SegmentOptions) -> LongArray:
    is_asked = (table[:, LAST_OFFSET] >= options.first_offset) & (
        first_offsets(table) < options.end_offset
    )
    asked: LongArray = table[is_asked | (table[:, FAULT] != Fault.NONE)]
    return asked


def read_byte_ranges(
    window: Window,
    options: SegmentOptions,
    *,
    is_compacted: bool,
    told_end: ToldEnd | None = None,
) -> Generator[ByteRange, None, int]:
    """The account of all bytes of the segment, in the order of the file; of a log's last one, with
    what is missing up to its told end. Returns as `read_segment_columns` does."""
    records = RecordColumns(options, (), {}, with_control_records=True)
    ranges = ByteRanges(
        SegmentFacts(
            window.size,
            window.unreadable,
            options.base_offset,
            options.next_base_offset,
            is_compacted,
            told_end,
        )
    )
    batches = SegmentBatches(window, options)
    for chunk in batches.chunks():
        for _ in records.batches(chunk):
            pass  # only what it finds out about the batches is of interest
        yield from ranges.rows(chunk.table)
    yield from ranges.last_rows()
    return batches.next_offset
