"""Consumer lag in a partition, and what it is made of. Rules: docs/format.md F310 to F317."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.lag.decoded_batches import LagWork
from kafkalog.inspection.lag.lag_bounds import LagBounds, lag_bounds
from kafkalog.inspection.lag.lag_walk import LagWalk
from kafkalog.inspection.lag.offset_intervals import (
    FINAL_MS,
    FINAL_OFFSET,
    FIRST_MS,
    FIRST_OFFSET,
    FIRST_TYPE,
    PIECE_COUNT,
    OffsetIntervals,
    RecordKind,
    first_in,
    largest,
    last_in,
    sums,
)
from kafkalog.storage.partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class LagAccounts:
    """Answers to as many questions, an element each; columns of table `consumer_lag`.

    `high_watermark_from` has numbers of `EndFrom`. Offsets and times are -1 where there is none,
    and where damage hides which it is.
    `is_before_log` is True where the log begins later than the time in question: its state then is
    not known.
    """

    log_start_offset: LongArray
    high_watermark: LongArray
    high_watermark_from: LongArray
    last_stable_offset: LongArray
    lag: LongArray
    readable_records: LongArray
    control_records: LongArray
    aborted_records: LongArray
    gaps: LongArray
    beyond_last_stable: LongArray
    below_log_start: LongArray
    in_tiered_storage: LongArray
    damaged: LongArray
    ahead_of_log: LongArray
    next_offset: LongArray
    next_timestamp_ms: LongArray
    timestamp_type: LongArray
    newest_timestamp_ms: LongArray
    consumed_timestamp_ms: LongArray
    is_before_log: BoolArray
    work: LagWork


def lag_accounts(
    log: PartitionLog,
    committed_offsets: LongArray,
    at_ms: LongArray | None = None,
    reached: LongArray | None = None,
    *,
    read_committed: bool,
    now_ms: int,
) -> LagAccounts:
    """Return what lies between committed offsets and the end of a partition's log, now, or at a
    past time for each of them: `at_ms`, by when the log is known to have `reached` an offset.
    Timestamps after `now_ms` come from wrong clocks.

    Reads batch headers. Decodes only the batches that hold one of these offsets, the first and the
    last batch between them and the end, those that decide where the log ended at a time, and
    compressed messages of the old formats. Reads a segment as a whole if it turns out to be
    damaged. Raises OSError where a file cannot be read.
    """
    read_whole: frozenset[int] = frozenset()
    work = LagWork()
    while True:
        walk = LagWalk(log, read_whole, work, now_ms)
        count = len(committed_offsets)
        bounds = lag_bounds(walk, count, at_ms, reached, read_committed=read_committed)
        accounts = _accounts(walk, committed_offsets, bounds, read_committed=read_committed)
        if not walk.doubtful:
            return accounts
        # What is damaged must count for nothing in any of the answers.
        read_whole |= walk.doubtful


class _Ranges(NamedTuple):
    """The offsets [starts, ends) that are left to read, and where the consumed offsets end."""

    starts: LongArray
    ends: LongArray
    consumed_ends: LongArray

    def places(self, found: OffsetIntervals) -> list[LongArray]:
        """Return the intervals that begin at each of these offsets."""
        return [np.searchsorted(found.boundaries, offsets, side="right") for offsets in self]


class _Records(NamedTuple):
    """The first record that is left to read, and the time of the last that was consumed; -1 where
    there is none, and where damage hides which it is."""

    next_offset: LongArray
    next_timestamp_ms: LongArray
    timestamp_type: LongArray
    newest_timestamp_ms: LongArray
    consumed_timestamp_ms: LongArray


def _accounts(
    walk: LagWalk, committed: LongArray, bounds: LagBounds, *, read_committed: bool
) -> LagAccounts:
    high_watermark, start = bounds.high_watermark, bounds.start_offset
    starts = np.maximum(committed, start)
    ends = np.maximum(np.minimum(high_watermark, bounds.last_stable_offset), starts)
    # What a reader of committed records has consumed ends at the last stable offset as well.
    ranges = _Ranges(starts, ends, np.minimum(starts, bounds.last_stable_offset))
    committed_end = int(bounds.last_stable_offset.max(initial=0)) if read_committed else None
    found = walk.intervals(start, ranges, committed_end)
    first, last, _ = ranges.places(found)
    readable, control, aborted = (sums(found.counts[kind], first, last) for kind in RecordKind)
    damaged = walk.damaged_between(starts, ends)
    below_tiered = np.minimum(bounds.earliest_offset, high_watermark)
    below_local = np.minimum(start, high_watermark)
    return LagAccounts(
        log_start_offset=np.full(len(committed), bounds.earliest_offset),
        high_watermark=high_watermark,
        high_watermark_from=bounds.high_watermark_from,
        last_stable_offset=bounds.last_stable_offset,
        lag=high_watermark - committed,
        readable_records=readable,
        control_records=control,
        aborted_records=aborted,
        gaps=ends - starts - readable - control - aborted - damaged,
        beyond_last_stable=np.maximum(high_watermark - np.maximum(starts, ends), 0),
        below_log_start=np.maximum(below_tiered - committed, 0),
        in_tiered_storage=np.maximum(below_local - np.maximum(committed, below_tiered), 0),
        damaged=damaged,
        ahead_of_log=np.maximum(committed - high_watermark, 0),
        **_records(walk, found, ranges, start, committed > start)._asdict(),
        is_before_log=bounds.is_before_log,
        work=walk.work,
    )


def _records(
    walk: LagWalk, found: OffsetIntervals, ranges: _Ranges, start: int, has_consumed: BoolArray
) -> _Records:
    """Return the records on both sides of the committed offsets; `start` is the log's."""
    first, last, consumed_last = ranges.places(found)
    is_held = found.first[:, PIECE_COUNT] > 0
    next_piece = first_in(is_held, first, last)
    log_begin = np.full(len(first), np.searchsorted(found.boundaries, start, side="right"))
    consumed_piece = np.where(has_consumed, last_in(is_held, log_begin, consumed_last), NO_VALUE)
    walk.decode_pieces(found, next_piece, consumed_piece)
    following, consumed = found.first[next_piece], found.last[consumed_piece]
    hidden = walk.damaged_between(ranges.starts, following[:, FIRST_OFFSET])
    has_next = (next_piece >= 0) & (hidden == 0)
    hidden = walk.damaged_between(consumed[:, FINAL_OFFSET] + 1, ranges.consumed_ends)
    is_known = (consumed_piece >= 0) & (hidden == 0)

    def of_next(values: LongArray) -> LongArray:
        return np.where(has_next, values, NO_VALUE)

    return _Records(
        next_offset=of_next(following[:, FIRST_OFFSET]),
        next_timestamp_ms=of_next(following[:, FIRST_MS]),
        timestamp_type=of_next(following[:, FIRST_TYPE]),
        newest_timestamp_ms=of_next(largest(found.newest_ms, first, last)),
        consumed_timestamp_ms=np.where(is_known, consumed[:, FINAL_MS], NO_VALUE),
    )
