"""A segment's records, and those that are damaged in it from other replicas.

Rules: docs/format.md F174 and F175.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.fault_details import FaultyRange, faulty_range
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow, Window
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.columns.records.segment_reader import Constants, OnFault
from kafkalog.columns.transactions.transaction_outcomes import TransactionOutcomes
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan, merged, subtract
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.reading.index_lookup import start_position
from kafkalog.storage.reading.renamed_files import current_path
from kafkalog.storage.reading.replica_reads import Filling, OtherSegment

# Called with offsets that came from another replica, and its file.
OnFilled = Callable[[OffsetSpan, str], None]
_Made = TypeVar("_Made")
_MadeRows = TypeVar("_MadeRows", covariant=True)


class RowMaker(Protocol[_MadeRows]):
    """Makes rows of a chunk's sound batches, and sets FAULT of those that have none."""

    def limit(self, first_offset: int, end_offset: int) -> None:
        """Make rows only of these offsets from now on."""
        ...

    def batches(self, chunk: Chunk) -> Iterator[_MadeRows]:
        """Yield the rows."""
        ...


# Makes rows of the segment itself, for None, or of another replica's in a file.
MakeRows = Callable[[SegmentOptions, tuple[str, OtherSegment] | None], RowMaker[_Made]]


@dataclass
class FilledRows(Generic[_Made]):
    """What is made of a segment's batches; what damage hides comes from the other replicas, each
    offset once. `on_fault` is called with damage that none of them fills.

    Batches next to damage, or to a gap where none should be, can lie about their offsets, which no
    checksum covers: other replicas are read first for them. `log_end` is the offset after the last
    that was found, once all rows were taken.
    """

    window: Window
    options: SegmentOptions
    make_rows: MakeRows[_Made]
    filling: Filling
    on_fault: OnFault
    on_filled: OnFilled
    log_end: int = field(default=0, init=False)

    def rows(self) -> Iterator[_Made]:
        """Yield what is made of the segment's own batches, then of those of other replicas."""
        window, options, filling = self.window, self.options, self.filling
        own_options = replace(options, end_offset=min(options.end_offset, filling.own_end))
        doubtful = doubtful_positions(window, own_options, filling)
        own = _Pass(own_options)
        yield from own.read(window, self.make_rows(own_options, None), without=doubtful)
        missing = _missing(own, options, filling)
        end_offset = min(own.next_offset, own_options.end_offset)
        for other in filling.others:
            agreed = [span for span in (_below(span, other.end_offset) for span in missing) if span]
            path = current_path(other.path) if agreed else None
            if path is None:
                continue
            theirs = _theirs(options, other, agreed, path)
            found = _Pass(theirs)
            with InputFile(path) as file:
                rows = self.make_rows(theirs, (path, other))
                yield from found.read(FileWindow(file), rows, spans=agreed)
            filled = subtract(agreed, subtract(agreed, found.spans))
            for span in filled:
                self.on_filled(span, path)
                end_offset = max(end_offset, span.end)
            missing = subtract(missing, filled)
        if len(doubtful) and missing:
            left = _Pass(own_options)
            rows = self.make_rows(own_options, None)
            yield from left.read(window, rows, only=doubtful, spans=missing)
            missing = subtract(missing, left.spans)
            own.add_faults(left)
        for fault in own.unfilled(missing, window, options, filling):
            self.on_fault(fault)
        if options.next_base_offset is None:
            end_offset = max(end_offset, filling.end_offset)
        self.log_end = end_offset


@dataclass
class FilledRecords:
    """The records of a segment as `SegmentRecords` has them, filled as `FilledRows` fills them."""

    window: Window
    options: SegmentOptions
    columns: Sequence[str]
    constants: Constants
    filling: Filling
    on_fault: OnFault
    on_filled: OnFilled
    _: KW_ONLY
    with_control_records: bool = False
    outcomes: TransactionOutcomes | None = None
    log_end: int = field(default=0, init=False)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the segment's own records, then those of other replicas."""
        filled = FilledRows(
            *(self.window, self.options, self._records, self.filling), self.on_fault, self.on_filled
        )
        yield from filled.rows()
        self.log_end = filled.log_end

    def _records(
        self, options: SegmentOptions, source: tuple[str, OtherSegment] | None
    ) -> RecordColumns:
        constants = self.constants
        if source is not None:
            path, other = source
            constants = {**constants, "file": path, "brokerId": other.broker_id}
        return RecordColumns(
            options,
            self.columns,
            constants,
            with_control_records=self.with_control_records,
            outcomes=self.outcomes,
            by_headers=options.check_crcs,
        )


def _missing(own: _Pass, options: SegmentOptions, filling: Filling) -> list[OffsetSpan]:
    """Return the requested offsets that the segment should have and does not."""
    start = max(options.first_offset, options.base_offset or 0)
    end = min(options.end_offset, filling.end_offset)
    missing = subtract([OffsetSpan(start, end)], own.spans)
    if filling.fills_gaps:
        return missing
    # A cleaner leaves gaps, but none at the end of a log.
    is_last = options.next_base_offset is None
    return [
        span
        for span in missing
        if own.faults_in(span) or (is_last and span.end == end and span.start >= own.next_offset)
    ]


def _below(span: OffsetSpan, end_offset: int) -> OffsetSpan | None:
    return OffsetSpan(span.start, min(span.end, end_offset)) if span.start < end_offset else None


def _theirs(
    options: SegmentOptions, other: OtherSegment, spans: Sequence[OffsetSpan], path: str
) -> SegmentOptions:
    """Return how to read another replica's segment for these offsets."""
    return replace(
        options,
        base_offset=other.base_offset,
        next_base_offset=other.next_base_offset,
        first_offset=spans[0].start,
        end_offset=spans[-1].end,
        start_position=start_position(path, spans[0].start),
        next_position=None,
    )


def doubtful_positions(window: Window, options: SegmentOptions, filling: Filling) -> LongArray:
    """Return where the sound batches are that lie next to damage or, in a log that should have
    none, next to a gap."""
    # Damage after the last requested batch counts too: parts see what the whole does.
    goes_on = options.end_offset < min(filling.own_end, filling.end_offset)
    read = replace(options, end_offset=options.end_offset + 1) if goes_on else options
    rows = [
        np.column_stack((chunk.table[:, _KEPT], first_offsets(chunk.table)))
        for chunk in SegmentBatches(window, read).chunks()
    ]
    if not rows:
        return np.zeros(0, dtype=np.int64)
    starts, faults, last_offsets, expected_offsets, found_offsets = np.concatenate(rows).T
    is_faulty, is_gap = faults != 0, found_offsets != expected_offsets
    is_cut = np.array([last_offsets[-1] + 1 < min(options.end_offset, filling.end_offset)])
    is_beside = np.append(is_faulty[1:], False) | np.insert(is_faulty[:-1], 0, False)
    if filling.fills_gaps:
        is_beside |= is_gap | np.append(is_gap[1:], is_cut)
    positions: LongArray = starts[is_beside & ~is_faulty]
    return positions


_KEPT = [column.POSITION, column.FAULT, column.LAST_OFFSET, column.EXPECTED_OFFSET]


class _Pass:
    """The sound offsets and the damage that one pass over a segment found."""

    def __init__(self, options: SegmentOptions) -> None:
        self.spans: list[OffsetSpan] = []
        self.next_offset = 0
        self._options = options
        self._faulty: list[list[int]] = []
        # Of damage, by its position: the first offset of the next sound batch.
        self._ends: dict[int, int] = {}
        self._open: list[int] = []

    def read(
        self,
        window: Window,
        rows: RowMaker[_Made],
        *,
        without: LongArray | None = None,
        only: LongArray | None = None,
        spans: Sequence[OffsetSpan] | None = None,
    ) -> Iterator[_Made]:
        """Yield the rows of the segment's sound batches; of batches but those at some positions,
        or of those only; with these offsets only, if any are given."""
        options = self._options
        requested = (
            [OffsetSpan(options.first_offset, options.end_offset)] if spans is None else spans
        )
        batches = SegmentBatches(window, options)
        for chunk in batches.chunks():
            table = chunk.table
            self._note_ends(table)
            if without is not None:
                table = table[~np.isin(table[:, column.POSITION], without)]
            if only is not None:
                table = table[np.isin(table[:, column.POSITION], only)]
            if spans is None:
                yield from rows.batches(replace(chunk, table=table))
                self._note(table, requested[0])
                continue
            for span, part in _parts(table, requested):
                rows.limit(span.start, span.end)
                yield from rows.batches(replace(chunk, table=part))
                self._note(part, span)
        self.next_offset = batches.next_offset
        self.spans = merged(self.spans)

    def _note_ends(self, table: LongArray) -> None:
        """Note where damage ends: the next sound batch shows which offsets it may have held."""
        if not self._open and not table[:, column.FAULT].any():
            return
        for row, first_offset in zip(table.tolist(), first_offsets(table).tolist(), strict=True):
            if row[column.FAULT]:
                self._open.append(row[column.POSITION])
                self._ends[row[column.POSITION]] = LARGEST_OFFSET
            else:
                self._ends.update(dict.fromkeys(self._open, first_offset))
                self._open.clear()

    def _note(self, table: LongArray, requested: OffsetSpan) -> None:
        faulty = table[:, column.FAULT] != 0
        self._faulty += table[faulty].tolist()
        sound = table[~faulty]
        ends = np.minimum(sound[:, column.LAST_OFFSET] + 1, requested.end)
        starts = np.maximum(first_offsets(sound), requested.start)
        # Join adjacent batches at once: there can be millions of them.
        begins = np.flatnonzero(np.append(True, starts[1:] != ends[:-1])[: len(starts)])
        lasts = np.append(begins[1:] - 1, len(ends) - 1)[: len(begins)]
        self.spans += map(OffsetSpan, starts[begins].tolist(), ends[lasts].tolist())

    def add_faults(self, other: _Pass) -> None:
        """Count the damage that another pass over the same file found."""
        self._faulty = sorted((*self._faulty, *other._faulty), key=itemgetter(column.POSITION))

    def faults_in(self, span: OffsetSpan) -> bool:
        """Return whether damage lies where these offsets are missing."""
        number = bisect_left(self._faulty, span.start, key=itemgetter(column.EXPECTED_OFFSET))
        return (
            number < len(self._faulty) and self._faulty[number][column.EXPECTED_OFFSET] <= span.end
        )

    def unfilled(
        self,
        missing: Sequence[OffsetSpan],
        window: Window,
        options: SegmentOptions,
        filling: Filling,
    ) -> Iterator[FaultyRange]:
        """Yield the damage where offsets are still missing or, after all known ones, may be."""
        is_last = options.next_base_offset is None
        for row in self._faulty:
            expected = row[column.EXPECTED_OFFSET]
            # Without an entry its header is sound, and the records are not.
            end_offset = self._ends.get(row[column.POSITION], row[column.LAST_OFFSET] + 1)
            number = bisect_right(missing, expected, key=attrgetter("end"))
            is_missing = number < len(missing) and missing[number].start < end_offset
            is_behind = filling.end_offset <= expected < options.end_offset
            is_behind = is_behind and options.is_first_to_tell(expected)
            if is_missing or (is_behind and not filling.end_is_known):
                ends_file = row[column.POSITION] + row[column.SIZE] == window.size
                yield faulty_range(row, window.unreadable, ends_log=ends_file and is_last)


def _parts(table: LongArray, spans: Sequence[OffsetSpan]) -> Iterator[tuple[OffsetSpan, LongArray]]:
    """Yield for each span the rows of the sound batches that overlap it. Both are in order."""
    sound = table[table[:, column.FAULT] == 0]
    if not len(sound):
        return
    firsts, lasts = first_offsets(sound), sound[:, column.LAST_OFFSET]
    number = bisect_right(spans, int(firsts[0]), key=attrgetter("end"))
    while number < len(spans) and spans[number].start <= lasts[-1]:
        span = spans[number]
        begin = int(np.searchsorted(lasts, span.start, side="left"))
        end = int(np.searchsorted(firsts, span.end, side="left"))
        if begin < end:
            yield span, sound[begin:end].copy()
        number += 1
