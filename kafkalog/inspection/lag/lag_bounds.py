"""Between which offsets lag is counted, now and at past moments.

Rules: docs/format.md F311, F312.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.records.single_batches import BatchRecords
from kafkalog.columns.transactions.transaction_walk import TransactionWalk, stable_offset
from kafkalog.format.batch_header import LOG_APPEND_TIME, NO_VALUE
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.inspection.lag.decoded_batches import DecodeBatches
from kafkalog.inspection.lag.lag_walk import LagWalk
from kafkalog.inspection.logs.log_headers import SegmentTable
from kafkalog.inspection.logs.log_offsets import earliest_offset, log_end_offset
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.log_snapshots import snapshot_entries

_BEFORE_ALL = np.iinfo(np.int64).min
# So many batches are decoded together.
_AT_ONCE = 64
_BATCH = [column.POSITION, column.SIZE, column.LAST_OFFSET]
# Of records that do not count.
_NEVER = np.iinfo(np.int64).min


class EndFrom(IntEnum):
    """Where the high watermark comes from: the checkpoint of a clean stop; the log's end; at a past
    time the timestamp of the first later record, by its type, or that more had been consumed by
    then."""

    CHECKPOINT = 0
    LOG_END = 1
    CREATE_TIME = 2
    LOG_APPEND_TIME = 3
    CONSUMED = 4


class LagBounds(NamedTuple):
    """The log starts at `earliest_offset`, in tiered storage if that is below `start_offset`. The
    arrays have an element for each question."""

    earliest_offset: int
    start_offset: int
    high_watermark: LongArray
    high_watermark_from: LongArray
    last_stable_offset: LongArray
    is_before_log: BoolArray


def lag_bounds(
    walk: LagWalk,
    count: int,
    at_ms: LongArray | None,
    reached: LongArray | None,
    *,
    read_committed: bool,
) -> LagBounds:
    """Return the bounds for `count` questions. At a past time the log ended at the first record
    with a later timestamp, but not below an offset that it is known to have reached; whether it was
    longer before it lost its beginning is not known."""
    log = walk.log
    start = log_bounds(log, EndRule.LOG_END).start_offset
    high_watermark, end_from = high_watermark_of(log, check_crcs=walk.ends_in_damage)
    if at_ms is None:
        stable = stable_offset(log, looks_for_damage=False).offset if read_committed else None
        ends = np.full(count, high_watermark)
        froms = np.full(count, end_from, dtype=np.int64)
        stables = ends if stable is None else np.full(count, min(stable, high_watermark))
        is_before = np.zeros(count, dtype=np.bool_)
    else:
        ends, froms, first = _ends_at(walk, at_ms, start, high_watermark)
        froms[ends == high_watermark] = end_from
        if reached is not None:
            is_more = (reached > ends) & (reached <= high_watermark)
            ends, froms = (
                np.where(is_more, reached, ends),
                np.where(is_more, EndFrom.CONSUMED, froms),
            )
        stables = np.maximum(_stable_offsets(log, ends), start) if read_committed else ends
        is_before = (ends == first) & (start > 0)
    return LagBounds(min(earliest_offset(log), start), start, ends, froms, stables, is_before)


def high_watermark_of(log: PartitionLog, *, check_crcs: bool = False) -> tuple[int, EndFrom]:
    """Return the present high watermark, and where it comes from. F311"""
    known = log_bounds(log, EndRule.HIGH_WATERMARK).end_offset
    if known is not None:
        return known, EndFrom.CHECKPOINT
    return log_end_offset(log, check_crcs=check_crcs), EndFrom.LOG_END


class KnownCommits(NamedTuple):
    """When which offsets of a partition were committed, by any group, the oldest first."""

    at_ms: LongArray
    committed_offsets: LongArray

    @classmethod
    def of(cls, at_ms: LongArray, committed_offsets: LongArray) -> KnownCommits:
        """Return commits in any order. Negative offsets are none."""
        order = np.argsort(at_ms, kind="stable")
        return cls(at_ms[order], np.maximum(committed_offsets[order], 0))

    def reached_by(self, log: PartitionLog, at_ms: LongArray) -> LongArray:
        """Return for each time the largest offset that was committed by then: the log had reached
        it. Offsets above the present high watermark belong to another log that had this name."""
        end, _ = high_watermark_of(log)
        of_this_log = np.where(self.committed_offsets <= end, self.committed_offsets, 0)
        largest = np.append(0, np.maximum.accumulate(of_this_log))
        # What was committed in the same millisecond was there as well.
        reached: LongArray = largest[np.searchsorted(self.at_ms, at_ms, side="right")]
        return reached


def _ends_at(
    walk: LagWalk, at_ms: LongArray, start: int, high_watermark: int
) -> tuple[LongArray, LongArray, int]:
    """Return the ends by the records' timestamps, the types of these, and the first record's
    offset."""
    # Of the time before all others the answer is the first record.
    moments, numbers = np.unique(np.append(at_ms, _BEFORE_ALL), return_inverse=True)
    with closing(walk.tables(start, high_watermark)) as tables:
        found, types = end_offsets_at(
            tables, moments, start, high_watermark, walk.decode, walk.now_ms
        )
    ends, froms = (values[numbers[:-1]] for values in (found, types))
    is_append_time = froms == LOG_APPEND_TIME
    return (
        ends,
        np.where(is_append_time, EndFrom.LOG_APPEND_TIME, EndFrom.CREATE_TIME),
        int(found[0]),
    )


def _stable_offsets(log: PartitionLog, ends: LongArray) -> LongArray:
    """Return the last stable offsets of a log that ended at these offsets: where the first
    transaction begins whose marker, if any, comes later. Transactions that were open where the log
    begins now are known if its first segment has a snapshot."""
    base_offset = log.segments[0].base_offset or 0 if log.segments else 0
    walk = TransactionWalk(log, base_offset, snapshot_entries(log, base_offset) or ())
    spans = [
        (LARGEST_OFFSET if found.marker_offset is None else found.marker_offset, found.first_offset)
        for found in (*walk.ended(), *walk.still_open.by_producer.values())
        if found.first_offset is not None
    ]
    if not spans:
        return ends
    markers, firsts = np.array(sorted(spans), dtype=np.int64).T
    # Transactions that begin after the end are above it all the same.
    lowest = np.minimum.accumulate(firsts[::-1])[::-1]
    lowest = np.append(lowest, LARGEST_OFFSET)
    stable: LongArray = np.minimum(ends, lowest[np.searchsorted(markers, ends)])
    return stable


def end_offsets_at(
    tables: Iterator[SegmentTable],
    moments: LongArray,
    start_offset: int,
    end_offset: int,
    decode: DecodeBatches,
    latest_ms: int,
) -> tuple[LongArray, LongArray]:
    """Return for each time, in milliseconds and ascending, the first offset from `start_offset` on
    whose record has a later timestamp, and the type of that timestamp; `end_offset` and -1 where no
    record below it has one.

    `tables` are all batches from `start_offset` on. Timestamps after `latest_ms` are ignored.
    """
    ends = np.full(len(moments), end_offset, dtype=np.int64)
    types = np.full(len(moments), NO_VALUE, dtype=np.int64)
    answered = 0
    for headers in tables:
        table = headers.table
        held = (table[:, column.FAULT] == 0) & (table[:, column.RECORDS_COUNT] != 0)
        rows = table[held & (table[:, column.LAST_OFFSET] >= start_offset)]
        # By their headers these have the answers.
        newest = np.maximum.accumulate(rows[:, column.MAX_TIMESTAMP])
        likely = np.unique(np.searchsorted(newest, moments[answered:], side="right"))
        decoded: dict[int, BatchRecords | None] = {}
        number = 0
        while answered < len(moments):
            later = np.flatnonzero(rows[number:, column.MAX_TIMESTAMP] > moments[answered])
            if not len(later):
                break
            number += int(later[0])
            if number not in decoded:
                next_ones = likely[np.searchsorted(likely, number, side="right") :][:_AT_ONCE]
                wanted = [number, *next_ones[next_ones < len(rows)].tolist()]
                decoded = dict(zip(wanted, decode(headers, rows[wanted][:, _BATCH]), strict=True))
            records = decoded[number]
            number += 1
            if records is None:
                continue
            is_valid = (records.offsets >= start_offset) & (records.timestamps_ms <= latest_ms)
            so_far = np.maximum.accumulate(np.where(is_valid, records.timestamps_ms, _NEVER))
            count = int(np.searchsorted(moments[answered:], so_far[-1], side="left"))
            places = np.searchsorted(so_far, moments[answered : answered + count], side="right")
            ends[answered : answered + count] = records.offsets[places]
            types[answered : answered + count] = records.timestamp_types[places]
            answered += count
        if answered == len(moments):
            break
    return np.minimum(ends, end_offset), types
