"""Which part of a log a broker's cleaner would clean, and how dirty it is.

Rules: docs/format.md F240 and F241.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class CleanableSegment(NamedTuple):
    """A segment, its size in bytes, its largest timestamp, and the largest of its first batch, -1
    without one."""

    base_offset: int
    size: int
    largest_timestamp_ms: int
    first_batch_timestamp_ms: int = -1


@dataclass(frozen=True, slots=True)
class CleanableLog:
    """The input of the cleaner's decision. `checkpoint` is the cleaner's, None without one; the
    last of the segments is the active one."""

    segments: Sequence[CleanableSegment]
    checkpoint: int | None
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class CleanablePart:
    """The part from `first_dirty_offset` to `first_uncleanable_offset`, exclusive.

    `is_reset` if the checkpoint does not count; `clean_bytes` and `dirty_bytes` as the cleaner
    counts them, by whole segments. `dirty_since_ms` is what `max.compaction.lag.ms` counts from,
    None if no dirty segment has a timestamp.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    is_reset: bool
    clean_bytes: int
    dirty_bytes: int
    dirty_since_ms: int | None = None

    @property
    def dirty_ratio(self) -> float | None:
        """The dirty share of all that is cleaned or could be; None if that is empty."""
        whole = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / whole if whole else None


def cleanable_part(log: CleanableLog, *, now_ms: int, min_compaction_lag_ms: int) -> CleanablePart:
    """Return what would be cleaned at `now_ms`. The log has a segment."""
    checkpoint = log.log_start_offset if log.checkpoint is None else log.checkpoint
    is_reset = not log.log_start_offset <= checkpoint <= log.log_end_offset
    first_dirty = log.log_start_offset if is_reset else checkpoint
    end = min(log.last_stable_offset, log.segments[-1].base_offset)
    if min_compaction_lag_ms > 0:
        # Dirty segments, and the one that contains the first dirty offset.
        floor = _floor(log.segments, first_dirty)
        for segment in log.segments[:-1]:
            is_young = segment.largest_timestamp_ms > now_ms - min_compaction_lag_ms
            if segment.base_offset >= floor and is_young:
                end = min(end, segment.base_offset)
                break
    end = _floor(log.segments, max(end, first_dirty))
    return CleanablePart(
        first_dirty,
        end,
        is_reset,
        clean_bytes=_bytes(log.segments, None, first_dirty),
        dirty_bytes=_bytes(log.segments, _floor(log.segments, first_dirty), end),
        dirty_since_ms=min(_dirty_times_ms(log.segments, first_dirty), default=None),
    )


def _dirty_times_ms(segments: Sequence[CleanableSegment], first_dirty: int) -> list[int]:
    """Return the positive timestamps of the first batches of dirty segments, without the active
    one."""
    floor = _floor(segments, first_dirty)
    dirty = [segment for segment in segments[:-1] if segment.base_offset >= floor]
    times_ms = [segment.first_batch_timestamp_ms for segment in dirty]
    return [time_ms for time_ms in times_ms if time_ms > 0]


def _floor(segments: Sequence[CleanableSegment], offset: int) -> int:
    """Return the base offset of the segment that contains an offset."""
    bases = [segment.base_offset for segment in segments]
    return max((base for base in bases if base <= offset), default=bases[0])


def _bytes(segments: Sequence[CleanableSegment], start: int | None, end: int) -> int:
    return sum(
        segment.size
        for segment in segments
        if segment.base_offset < end and (start is None or segment.base_offset >= start)
    )
