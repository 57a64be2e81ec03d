"""The offset for a time: as `kafka-get-offsets --time` answers it (F99), and without the records
whose times are doubtful (F930). Rules: docs/format.md F99, F930 and F931.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkalog.columns.arrays import integers
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.index_lookup import first_offset_from, start_position
from kafkalog.storage.reading.offset_ranges import (
    MOST_DOUBTFUL,
    DoubtfulRecord,
    TimeAnswer,
    TimeRule,
)
from kafkalog.storage.reading.renamed_files import opened_segment

LEAST_TIME_MS = -(2**63)
# How many batches after a record say what the time was.
NEIGHBOURS = 15
# Late batches at most so many rows apart are read at once.
_NEAR_ROWS = 16


class FirstRecord(NamedTuple):
    """A record with its time, and what is doubtful about it, if anything is."""

    offset: int
    timestamp_ms: int
    doubtful: DoubtfulRecord | None


def offset_for_time(log: PartitionLog, start_offset: int, timestamp_ms: int) -> int | None:
    """Return the first offset from `start_offset` on whose record has this timestamp or a later
    one.

    Reads batch headers, and records from the first batch on that may hold it. None if no record is
    as late. Damaged batches count for nothing.
    """
    for _, offsets, _times in _late_records(log, start_offset, timestamp_ms):
        return int(offsets[0])
    return None


def time_answer(
    log: PartitionLog, start_offset: int, timestamp_ms: int, rule: TimeRule | None
) -> TimeAnswer:
    """Return the first offset from `start_offset` on whose record is as late; by a rule that passes
    over doubtful records the first whose record is not doubtful (F930)."""
    doubtful: deque[DoubtfulRecord] = deque(maxlen=MOST_DOUBTFUL)
    for number, offsets, times in _late_records(log, start_offset, timestamp_ms):
        if rule is None:
            return TimeAnswer(int(offsets[0]))
        neighbours = _Neighbours(log, number, rule)
        for offset, time_ms in zip(offsets.tolist(), times.tolist(), strict=True):
            doubt = neighbours.doubt(offset, time_ms)
            if doubt is not None:
                doubtful.append(doubt)
            if doubt is None or not rule.passes_over:
                return TimeAnswer(offset, tuple(doubtful))
    return TimeAnswer(None, tuple(doubtful))


def first_record(log: PartitionLog, start_offset: int, rule: TimeRule) -> FirstRecord | None:
    """Return the first record from an offset on, None without one."""
    for number, offsets, times in _late_records(log, start_offset, LEAST_TIME_MS):
        offset, time_ms = int(offsets[0]), int(times[0])
        doubt = _Neighbours(log, number, rule).doubt(offset, time_ms)
        return FirstRecord(offset, time_ms, doubt)
    return None


class _Neighbours:
    """The batches that follow records of a segment, F931."""

    def __init__(self, log: PartitionLog, segment_number: int, rule: TimeRule) -> None:
        self._segments = log.segments[segment_number:]
        self._rule = rule
        # The times are those after any record below this offset, from the last one on.
        self._first_offset, self._last_asked = 0, LARGEST_OFFSET
        self._times = np.empty(0, dtype=np.int64)

    def doubt(self, offset: int, timestamp_ms: int) -> DoubtfulRecord | None:
        """Return the record if its time is doubtful. No offset is below the one before."""
        latest_ms = self._rule.now_ms + self._rule.max_future_ms
        if timestamp_ms > latest_ms:
            return DoubtfulRecord(offset, timestamp_ms, is_ahead=True)
        if not self._last_asked <= offset < self._first_offset:
            self._look(offset)
        earlier = self._times < timestamp_ms - self._rule.max_future_ms
        if int(earlier.sum()) * 2 > len(self._times):
            return DoubtfulRecord(offset, timestamp_ms, is_ahead=False)
        return None

    def _look(self, offset: int) -> None:
        self._first_offset, self._last_asked = LARGEST_OFFSET, offset
        found: list[int] = []
        for row in self._rows_after(offset):
            if not found:
                self._first_offset = max(int(row[column.EXPECTED_OFFSET]), offset + 1)
            found.append(int(row[column.MAX_TIMESTAMP]))
            if len(found) == NEIGHBOURS:
                break
        self._times = np.array(found, dtype=np.int64)

    def _rows_after(self, offset: int) -> Iterator[LongArray]:
        """Yield the sound batches that begin after an offset and have a time."""
        for segment in self._segments:
            options = SegmentOptions.of(segment, first_offset=offset)
            with opened_segment(segment) as file:
                options = replace(options, start_position=start_position(file.path, offset))
                for chunk in SegmentHeaders(FileWindow(file), options).chunks():
                    table = chunk.table
                    is_after = (
                        (table[:, column.FAULT] == 0)
                        & (table[:, column.RECORDS_COUNT] != 0)
                        & (table[:, column.MAX_TIMESTAMP] >= 0)
                        & (column.first_offsets(table) > offset)
                    )
                    yield from table[is_after]


_Late = tuple[int, LongArray, LongArray]


def _late_records(log: PartitionLog, start_offset: int, timestamp_ms: int) -> Iterator[_Late]:
    """Yield the number of a segment with offsets and times of records that are as late, in the
    order of the log, none without any."""
    for number, segment in enumerate(log.segments):
        if segment.next_base_offset is not None and segment.next_base_offset <= start_offset:
            continue
        with opened_segment(segment) as file:
            # No batch below is as late, whatever state it is in.
            first = max(start_offset, first_offset_from(file.path, timestamp_ms))
            for offsets, times in _LateInSegment(file, segment, timestamp_ms).records(first):
                yield number, offsets, times


class _LateInSegment:
    """The records of a segment that have a time or a later one."""

    def __init__(self, file: InputFile, segment: SegmentFile, timestamp_ms: int) -> None:
        self._file, self._timestamp_ms = file, timestamp_ms
        self._options = SegmentOptions.of(segment)
        self._has_faults = False

    def records(self, start_offset: int) -> Iterator[tuple[LongArray, LongArray]]:
        """Yield offsets and times of records from an offset on."""
        options = replace(
            self._options,
            first_offset=start_offset,
            start_position=start_position(self._file.path, start_offset),
        )
        is_doubtful, following = False, start_offset
        # A walk can begin at the batch before the first one that it wants.
        before = options.start_position
        for chunk in SegmentHeaders(FileWindow(self._file), options).chunks():
            # A walk reuses its table, and others can use it meanwhile.
            table = chunk.table.copy()
            for first, last in self._late_rows(table, start_offset):
                is_doubtful = is_doubtful or bool(_is_odd(table[: first + 1]).any())
                if is_doubtful:
                    break
                begin = max(following, int(table[first, column.EXPECTED_OFFSET]))
                end = int(table[last, column.LAST_OFFSET]) + 1
                position = int(table[first - 1, column.POSITION]) if first else before
                for found in self._decoded(begin, end, position):
                    following = int(found[0][-1]) + 1
                    yield found
                is_doubtful = self._has_faults
                if is_doubtful:
                    break
                following = max(following, end)
            is_doubtful = is_doubtful or bool(_is_odd(table).any())
            if is_doubtful:
                break
            before = int(table[-1, column.POSITION])
        if is_doubtful:
            # A wrong length can hide batches from who looks at headers only: where one could have,
            # all is read.
            position = start_position(self._file.path, following)
            yield from self._decoded(following, LARGEST_OFFSET, position)

    def _late_rows(self, table: LongArray, start_offset: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the last row of batches near each other that may hold such records.
        A header can promise more than the records hold."""
        may_hold = (
            (table[:, column.FAULT] == 0)
            & (table[:, column.RECORDS_COUNT] != 0)
            & (table[:, column.MAX_TIMESTAMP] >= self._timestamp_ms)
            & (table[:, column.LAST_OFFSET] >= start_offset)
        )
        rows = np.flatnonzero(may_hold)
        # Mostly the first one has the answer: the first is read alone, and then ever more at once.
        number, count = 0, 1
        while number < len(rows):
            near = rows[number : number + count]
            apart = np.flatnonzero(np.diff(near) > _NEAR_ROWS)
            near = near[: int(apart[0]) + 1] if len(apart) else near
            yield int(near[0]), int(near[-1])
            number, count = number + len(near), count * 2

    def _decoded(
        self, first_offset: int, end_offset: int, position: int
    ) -> Iterator[tuple[LongArray, LongArray]]:
        columns = ("offset", "timestampMs")
        options = replace(
            self._options, first_offset=first_offset, end_offset=end_offset, start_position=position
        )
        records = SegmentRecords(
            FileWindow(self._file), options, columns, {}, self._note, with_control_records=True
        )
        for batch in records.rows():
            offsets, times = (integers(batch.column(name)) for name in columns)
            is_late = times >= self._timestamp_ms
            if is_late.any():
                yield offsets[is_late], times[is_late]

    def _note(self, _fault: object) -> None:
        self._has_faults = True


def _is_odd(table: LongArray) -> NDArray[np.bool_]:
    """Return where something is damaged or offsets are missing, as they are if a length is
    wrong."""
    has_gap = (table[:, column.MAGIC] == 2) & (
        table[:, column.BASE_OFFSET] != table[:, column.EXPECTED_OFFSET]
    )
    odd: NDArray[np.bool_] = has_gap | (table[:, column.FAULT] != 0)
    return odd
