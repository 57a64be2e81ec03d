"""Where a log ended at a past time, by the times of its batches. Rules: docs/restore.md F1043,
docs/format.md F1322.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.batch_header import CONTROL_BIT, LOG_APPEND_TIME_BIT
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.offset_ranges import LARGEST_TIME_MS, MAX_FUTURE_MS
from kafkalog.storage.reading.renamed_files import opened_segment


class TimeCut:
    """Finds the offset before which a log ended at `at_ms`. Times of producers that are later than
    `latest_ms` do not count."""

    def __init__(self, at_ms: int, latest_ms: int = LARGEST_TIME_MS) -> None:
        self._at_ms = at_ms
        self._latest_ms = latest_ms
        self._late_by_broker = LARGEST_OFFSET
        self._early_by_broker = 0
        # The first of each table's that is above the last early one known then.
        self._late_by_producer: list[int] = []

    def note(self, rows: LongArray) -> None:
        """Take note of a table of sound batches, the tables in any order."""
        is_by_broker = rows[:, column.ATTRIBUTES] & (CONTROL_BIT | LOG_APPEND_TIME_BIT) != 0
        times = rows[:, column.MAX_TIMESTAMP]
        is_late = times > self._at_ms
        first, after = first_offsets(rows), rows[:, column.LAST_OFFSET] + 1
        by_producer = is_late & ~is_by_broker & (times <= self._latest_ms)
        self._late_by_broker = min(self._late_by_broker, _least(first[is_late & is_by_broker]))
        early = after[~is_late & is_by_broker]
        self._early_by_broker = max(self._early_by_broker, int(early.max(initial=0)))
        found = _least(first[by_producer & (first >= self._early_by_broker)])
        if found < self._late_by_broker:
            self._late_by_producer.append(found)

    @property
    def late_by_producer(self) -> int:
        """The first offset whose producer had a later time, after what brokers say was early."""
        late = (each for each in self._late_by_producer if each >= self._early_by_broker)
        return min(late, default=LARGEST_OFFSET)

    def offset(self, end: int) -> int:
        """Return the cut of a log that ends at an offset."""
        return min(end, self.late_by_producer, self._late_by_broker)


class _Found(NamedTuple):
    """What the headers of a log say about a past time: the cut, the first offset that is left, and
    the end."""

    cut: TimeCut
    begin: int
    end: int


def past_end(log: PartitionLog, at_ms: int, now_ms: int) -> int | None:
    """Return the offset before which a log ended at a past time, by batch headers. None if that is
    not known, because what the log had then has been deleted or cleaned away. `now_ms` is the clock
    by which times are of the future (F930)."""
    cut, begin, end = _found(log, at_ms, now_ms)
    known = log_bounds(log, EndRule.HIGH_WATERMARK).end_offset
    return _after(cut.offset(end if known is None else min(end, known)), begin)


def first_offset_after(log: PartitionLog, at_ms: int, now_ms: int) -> int | None:
    """Return the first offset that is later than a past time, LARGEST_OFFSET without one. None and
    `now_ms` are as in `past_end`."""
    cut, begin, _ = _found(log, at_ms, now_ms)
    return _after(cut.offset(LARGEST_OFFSET), begin)


def _after(found: int, begin: int) -> int | None:
    return None if found <= begin and begin > 0 else found


def _found(log: PartitionLog, at_ms: int, now_ms: int) -> _Found:
    start = log_bounds(log, EndRule.LOG_END).start_offset
    cut = TimeCut(at_ms, now_ms + MAX_FUTURE_MS)
    first, end = LARGEST_OFFSET, start
    for segment in log.segments:
        with opened_segment(segment) as file:
            batches = SegmentHeaders(FileWindow(file), SegmentOptions.of(segment))
            for chunk in batches.chunks():
                rows = chunk.table[chunk.table[:, column.FAULT] == 0]
                cut.note(rows)
                first = min(first, _least(first_offsets(rows)))
        end = max(end, batches.next_offset)
    return _Found(cut, start if first == LARGEST_OFFSET else max(start, first), end)


def _least(offsets: LongArray) -> int:
    return int(offsets.min(initial=LARGEST_OFFSET))
