"""What a log holds between given offsets: counts of records, the newest of them, first and last."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets, is_wrapper
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.records.single_batches import BatchRecords
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import OffsetSpan
from kafkalog.inspection.lag.decoded_batches import DecodeBatches
from kafkalog.inspection.logs.log_headers import SegmentTable


class RecordKind(IntEnum):
    """What a batch's records are to a consumer."""

    READABLE = 0
    CONTROL = 1
    ABORTED = 2


# A piece: the records of one batch that lie in one interval. Offset and times of the first and
# the last of them are known if IS_DECODED, else by their batch only.
(
    INTERVAL,
    PIECE_KIND,
    PIECE_COUNT,
    START,
    NEWEST_MS,
    IS_DECODED,
    FIRST_OFFSET,
    FIRST_MS,
    FIRST_TYPE,
    FINAL_OFFSET,
    FINAL_MS,
    SEGMENT,
    BATCH_POSITION,
    BATCH_SIZE,
    BATCH_LAST_OFFSET,
) = range(15)
_PIECE_WIDTH = 15
# What is needed to decode a piece's batch.
BATCH_COLUMNS = [BATCH_POSITION, BATCH_SIZE, BATCH_LAST_OFFSET]


class OffsetIntervals:
    """Interval k has the offsets [boundaries[k - 1], boundaries[k]), the first and the last one all
    below and above. Arrays have an element or a row for each interval.

    `counts` is of shape (3, intervals), by `RecordKind`; `newest_ms` (-1 for none), `first` and
    `last` are of the readable records, a row with COUNT 0 standing for none.
    """

    def __init__(self, boundaries: LongArray, decode: DecodeBatches) -> None:
        intervals = len(boundaries) + 1
        self._decode = decode
        self.boundaries = boundaries
        self.counts = np.zeros((len(RecordKind), intervals), dtype=np.int64)
        self.newest_ms = np.full(intervals, NO_VALUE, dtype=np.int64)
        self.first = np.zeros((intervals, _PIECE_WIDTH), dtype=np.int64)
        self.last = np.zeros((intervals, _PIECE_WIDTH), dtype=np.int64)

    def add(self, headers: SegmentTable, is_aborted: BoolArray, counted: OffsetSpan) -> None:
        """Take the next batches. Compressed messages of the old formats, whose headers do not count
        what is in them, are decoded among the `counted` offsets only."""
        pieces = self._pieces(headers, is_aborted, counted)
        for kind in RecordKind:
            of_kind = pieces[pieces[:, PIECE_KIND] == kind]
            np.add.at(self.counts[kind], of_kind[:, INTERVAL], of_kind[:, PIECE_COUNT])
        readable = pieces[pieces[:, PIECE_KIND] == RecordKind.READABLE]
        if not len(readable):
            return
        np.maximum.at(self.newest_ms, readable[:, INTERVAL], readable[:, NEWEST_MS])
        numbers, firsts = np.unique(readable[:, INTERVAL], return_index=True)
        lasts = np.append(firsts[1:], len(readable)) - 1
        is_new = self.first[numbers, PIECE_COUNT] == 0
        self.first[numbers[is_new]] = readable[firsts[is_new]]
        self.last[numbers] = readable[lasts]

    def _pieces(
        self, headers: SegmentTable, is_aborted: BoolArray, counted: OffsetSpan
    ) -> LongArray:
        table = headers.table
        is_held = (table[:, column.FAULT] == 0) & (table[:, column.RECORDS_COUNT] != 0)
        rows, is_aborted = table[is_held], is_aborted[is_held]
        starts = first_offsets(rows)
        first, last = (
            np.searchsorted(self.boundaries, offsets, side="right")
            for offsets in (starts, rows[:, column.LAST_OFFSET])
        )
        is_counted = (rows[:, column.LAST_OFFSET] >= counted.start) & (starts < counted.end)
        is_split = (first != last) | (is_wrapper(rows) & is_counted)
        pieces = _whole(rows, headers.segment)
        pieces[:, INTERVAL], pieces[:, START] = first, starts
        pieces[is_aborted, PIECE_KIND] = RecordKind.ABORTED
        parts = [pieces[~is_split]]
        if is_split.any():
            split = pieces[is_split]
            decoded = self._decode(headers, split[:, BATCH_COLUMNS])
            is_sound = np.array([records is not None for records in decoded], dtype=np.bool_)
            table[np.flatnonzero(is_held)[is_split][~is_sound], column.FAULT] = Fault.RECORDS
            sound = [records for records in decoded if records is not None]
            if sound:
                parts.append(self._split(sound, split[is_sound]))
        found = np.concatenate(parts)
        ordered: LongArray = found[np.argsort(found[:, START], kind="stable")]
        return ordered

    def _split(self, decoded: Sequence[BatchRecords], pieces: LongArray) -> LongArray:
        """Return the parts of batches that lie in one interval each."""
        records = BatchRecords(*(np.concatenate(arrays) for arrays in zip(*decoded, strict=True)))
        batches = np.repeat(np.arange(len(decoded)), [len(each.offsets) for each in decoded])
        numbers = np.searchsorted(self.boundaries, records.offsets, side="right")
        is_first = np.append(True, (np.diff(batches) != 0) | (np.diff(numbers) != 0))
        firsts = np.flatnonzero(is_first)
        ends = np.append(firsts[1:], len(numbers))
        parts = pieces[batches[firsts]]
        parts[:, INTERVAL] = numbers[firsts]
        parts[:, PIECE_COUNT] = ends - firsts
        parts[:, START] = records.offsets[firsts]
        parts[:, NEWEST_MS] = np.maximum.reduceat(records.timestamps_ms, firsts)
        set_records(parts, records, firsts, ends - 1)
        return parts


def set_records(
    pieces: LongArray, records: BatchRecords, firsts: LongArray | int, lasts: LongArray | int
) -> None:
    """Note in a piece, or in each of some, the first and the last of the records that are in it."""
    pieces[..., IS_DECODED] = 1
    pieces[..., FIRST_OFFSET] = records.offsets[firsts]
    pieces[..., FIRST_MS] = records.timestamps_ms[firsts]
    pieces[..., FIRST_TYPE] = records.timestamp_types[firsts]
    pieces[..., FINAL_OFFSET] = records.offsets[lasts]
    pieces[..., FINAL_MS] = records.timestamps_ms[lasts]


def _whole(rows: LongArray, segment: int) -> LongArray:
    """Return batches as pieces, by their headers."""
    pieces = np.zeros((len(rows), _PIECE_WIDTH), dtype=np.int64)
    pieces[:, PIECE_KIND] = np.where(
        column.is_control(rows), RecordKind.CONTROL, RecordKind.READABLE
    )
    # Where the header does not count them there is one at least.
    pieces[:, PIECE_COUNT] = np.maximum(rows[:, column.RECORDS_COUNT], 1)
    pieces[:, NEWEST_MS] = rows[:, column.MAX_TIMESTAMP]
    pieces[:, SEGMENT] = segment
    pieces[:, BATCH_POSITION] = rows[:, column.POSITION]
    pieces[:, BATCH_SIZE] = rows[:, column.SIZE]
    pieces[:, BATCH_LAST_OFFSET] = rows[:, column.LAST_OFFSET]
    return pieces


# Functions of runs of intervals: `starts` are the first intervals of the runs, `ends` the next ones
# after the last.


def sums(values: LongArray, starts: LongArray, ends: LongArray) -> LongArray:
    """Return the sum of each run, 0 for an empty one."""
    running = np.concatenate(([0], np.cumsum(values)))
    found: LongArray = running[ends] - running[starts]
    return found


def largest(values: LongArray, starts: LongArray, ends: LongArray) -> LongArray:
    """Return the largest value of each run, -1 for an empty one."""
    found = np.full(len(starts), NO_VALUE, dtype=np.int64)
    lengths = ends - starts
    # tops[i] is the largest of `width` intervals from i on; two of these cover a run.
    width, tops = 1, values
    while len(tops):
        rows = np.flatnonzero((lengths >= width) & (lengths < 2 * width))
        found[rows] = np.maximum(tops[starts[rows]], tops[ends[rows] - width])
        tops = np.maximum(tops[:-width], tops[width:])
        width *= 2
    return found


def first_in(is_held: BoolArray, starts: LongArray, ends: LongArray) -> LongArray:
    """Return the first interval of each run that holds something, -1 for none."""
    held = np.flatnonzero(is_held)
    places = np.searchsorted(held, starts)
    found = np.append(held, len(is_held))[places]
    return np.where(found < ends, found, NO_VALUE)


def last_in(is_held: BoolArray, starts: LongArray, ends: LongArray) -> LongArray:
    """Return the last interval of each run that holds something, -1 for none."""
    held = np.flatnonzero(is_held)
    places = np.searchsorted(held, ends)
    found = np.concatenate(([NO_VALUE], held))[places]
    return np.where(found >= starts, found, NO_VALUE)
