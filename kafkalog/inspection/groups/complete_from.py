"""From when on a compacted log of commits has all that counted. Rule: docs/format.md F328."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.logs.log_headers import LogHeaders, is_damaged
from kafkalog.inspection.logs.missing_offsets import MissingOffsets
from kafkalog.storage.files.files import modified_ms
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.relisted_logs import read_relisted


class CompleteFrom(NamedTuple):
    """Below `offset` records may be missing, 0 for none; states are complete from `time_ms` on,
    milliseconds since 1970, None for at all times. `damaged_ranges` is in how many places something
    is damaged, but for what a broker leaves at the end of a log; `newest_ms` is the largest
    timestamp of a batch, None without one."""

    offset: int
    time_ms: int | None
    damaged_ranges: int
    newest_ms: int | None = None


def complete_from(log: PartitionLog) -> CompleteFrom:
    """Return from when on a log is complete, by all its batches and their checksums: damaged
    batches are lost as well. If a segment is deleted meanwhile, the log is listed again (F951).
    Raises OSError where a file cannot be read."""
    return read_relisted(log, _complete_from) or CompleteFrom(0, None, 0)


def _complete_from(log: PartitionLog) -> CompleteFrom:
    if not log.segments:
        return CompleteFrom(0, None, 0)
    walk = CompleteFromWalk(log)
    numbers = range(len(log.segments))
    every = LogHeaders(log, read_whole=numbers)
    for number in numbers:
        for headers in every.tables([number]):
            walk.take(headers.table)
        walk.end_segment()
    return walk.found()


class CompleteFromWalk:
    """Takes all batches of a log that has a segment, with all faults, in their order: whoever reads
    its records can have it go along."""

    def __init__(self, log: PartitionLog) -> None:
        key = log.topic_partition
        self._log = log
        self._checkpoint = log.log_dir.cleaner_checkpoints.get(key, NO_VALUE) if key else NO_VALUE
        self._by_checkpoint = _Bound(self._checkpoint)
        # The cleaner leaves the active segment alone.
        self._by_segment = _Bound(log.segments[-1].base_offset or 0)
        self._gaps = MissingOffsets(self._checkpoint)
        self._segments_left = len(log.segments)
        self._damaged, self._newest_ms = 0, NO_VALUE

    def take(self, table: LongArray) -> None:
        """Take the next batches."""
        is_whole = self._gaps.take(table)
        is_last = self._segments_left == 1
        self._damaged += int(np.count_nonzero(is_damaged(table, is_last=is_last)))
        times = table[table[:, column.FAULT] == 0][:, column.MAX_TIMESTAMP]
        self._newest_ms = max(self._newest_ms, int(times.max(initial=NO_VALUE)))
        for bound in (self._by_checkpoint, self._by_segment):
            bound.take(table, is_whole)

    def end_segment(self) -> None:
        """Know that there are no more in a segment."""
        self._segments_left -= 1

    @property
    def is_at_end(self) -> bool:
        """Whether all segments were taken."""
        return not self._segments_left

    def found(self) -> CompleteFrom:
        """Return from when on the log is complete."""
        gaps, damaged = self._gaps, self._damaged
        newest_ms = None if self._newest_ms < 0 else self._newest_ms
        if not gaps.end:
            return CompleteFrom(0, None, damaged, newest_ms)
        is_by_checkpoint = gaps.end <= self._checkpoint <= gaps.log_end
        bound = self._by_checkpoint if is_by_checkpoint else self._by_segment
        time_ms = bound.time_ms()
        if gaps.end > bound.offset or time_ms is None:
            # The missing records were there when their file was last written to.
            offset = max(gaps.end, bound.offset)
            last_written_ms = max(modified_ms(segment.path) for segment in self._log.segments)
            return CompleteFrom(offset, last_written_ms, damaged, newest_ms)
        return CompleteFrom(bound.offset, time_ms, damaged, newest_ms)


def first_timestamp_ms(log: PartitionLog) -> int | None:
    """Return the earliest timestamp of an intact batch, in milliseconds since 1970, None if no
    batch has one: the log shows nothing before. Raises OSError."""
    return read_relisted(log, _first_timestamp_ms)


def _first_timestamp_ms(log: PartitionLog) -> int | None:
    earliest: list[int] = []
    for headers in LogHeaders(log).tables(range(len(log.segments))):
        table = headers.table
        sound = table[table[:, column.FAULT] == 0]
        times = np.append(column.first_timestamps(sound), sound[:, column.MAX_TIMESTAMP])
        earliest += times[times >= 0].tolist()
        earliest = [min(earliest)] if earliest else []
    return earliest[0] if earliest else None


class _Bound:
    """The times around an offset below which a log was cleaned."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._newest_below_ms = NO_VALUE
        self._first_after_ms = NO_VALUE
        self._has_last_below = False

    def take(self, batches: LongArray, is_whole: BoolArray) -> None:
        """The next batches, and which of them are whole."""
        is_sound = batches[:, column.FAULT] == 0
        times = batches[:, column.MAX_TIMESTAMP]
        below = is_sound & (first_offsets(batches) < self.offset)
        if below.any():
            last = int(np.flatnonzero(below)[-1])
            self._newest_below_ms = max(self._newest_below_ms, int(times[below].max()))
            is_next = int(batches[last, column.LAST_OFFSET]) + 1 >= self.offset
            self._has_last_below = bool(is_whole[last]) and is_next
        after = times[is_sound & ~below & (times >= 0)]
        if self._first_after_ms == NO_VALUE and len(after):
            self._first_after_ms = int(after[0])

    def time_ms(self) -> int | None:
        """Return a time that no record below the offset is later than, None if it is not known: a
        delete that was the last record below may have vanished without a trace."""
        time_ms = self._newest_below_ms if self._has_last_below else self._first_after_ms
        return None if time_ms == NO_VALUE else time_ms
