"""Consumer lag in a partition, what it is made of, and its columns beside the rows of a table that
ask for them.

Rules: docs/format.md F310 to F317; columns: schemas/tables/consumer_lag.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import Numbers, chosen, fixed_width, integers, present, scalar
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.lag.decoded_batches import LagWork
from kafkalog.inspection.lag.lag_bounds import EndFrom, KnownCommits, LagBounds, lag_bounds
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
from kafkalog.log_lines import logger
from kafkalog.storage.log_dir.log_dir import logs_of_now
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.relisted_logs import read_relisted

_logger = logger(__name__)

_DELETED = "%s does not exist any more: its lag is unknown"


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


ACCOUNT_COLUMNS = tuple(
    field.name for field in fields(LagAccounts) if field.name not in ("is_before_log", "work")
)
_LOG_START, _, _END_FROM, _ = _ABOUT_LOG = ACCOUNT_COLUMNS[:4]
# What a lag is made of. The last one is taken off the sum of the others.
LAG_PARTS = ACCOUNT_COLUMNS[
    ACCOUNT_COLUMNS.index("readable_records") : ACCOUNT_COLUMNS.index("next_offset")
]
# Parts of a lag that a reader has not had.
_LEFT = ("readable_records", "in_tiered_storage", "damaged")
_ZERO = scalar(0, pa.int64())
# Columns in which -1 means none.
_OPTIONAL = ACCOUNT_COLUMNS[ACCOUNT_COLUMNS.index("next_offset") :]


def with_accounts(
    rows: pa.Table,
    log: PartitionLog | None,
    *,
    read_committed: bool,
    now_ms: int,
    at: str | None = None,
    known: KnownCommits | None = None,
) -> pa.Table:
    """Return rows about one partition with `ACCOUNT_COLUMNS`, given its log, or None if the input
    does not have it. `known` are all commits for the partition, the rows' own where it is None.

    Rows have `committed_offset`, and the time they are about in a column `at`, in milliseconds;
    without it that is now, `now_ms`. The columns are null without a log, and where it
    begins later than the time; of rows without a committed offset all but those about the log.
    """
    moments = None if at is None else _numbers(rows, at)
    committed = _numbers(rows, "committed_offset")
    accounts = accounts_of_now(
        log, committed, moments, known, read_committed=read_committed, now_ms=now_ms
    )
    if accounts is None:
        for name in ACCOUNT_COLUMNS:
            rows = rows.append_column(name, pa.nulls(len(rows), _data_type(name)))
        return rows
    is_uncommitted = np.concatenate(
        [_is_null(chunk) for chunk in rows.column("committed_offset").chunks]
    )
    for name in ACCOUNT_COLUMNS:
        rows = rows.append_column(name, _account_column(accounts, name, is_uncommitted))
    return rows


def lag_logs(paths: Sequence[str]) -> list[PartitionLog | None]:
    """Return for each partition directory its log as it is now. Log those that do not exist any
    more, and return None for them."""
    logs = logs_of_now(paths)
    for path, log in zip(paths, logs, strict=True):
        if log is None:
            _logger.warning(_DELETED, path)
    return logs


def lag_times(rows: pa.Table | Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return the columns time_lag_ms, freshness_ms and wait_before_commit_ms of an account (F315),
    in milliseconds; `rows` are a table, or its columns, with the account's columns, at_ms and
    commit_timestamp_ms.

    The lag in time is 0 where nothing is left, and otherwise the age of the next record: null
    without its time, and where no integer of 64 bits has the age.
    """
    parts = [Numbers.of(rows[name]) for name in _LEFT]
    has_none = np.logical_and.reduce([part.is_set & (part.values == 0) for part in parts])
    next_ms = Numbers.of(rows["next_timestamp_ms"])
    age = Numbers.of(rows["at_ms"]).minus(next_ms)
    newest, consumed = (
        Numbers.of(rows[name]) for name in ("newest_timestamp_ms", "consumed_timestamp_ms")
    )
    return {
        "time_lag_ms": pc.if_else(fixed_width(has_none, pa.bool_()), _ZERO, age),
        "freshness_ms": newest.minus(next_ms),
        "wait_before_commit_ms": Numbers.of(rows["commit_timestamp_ms"]).minus(consumed),
    }


def accounts_of_now(
    log: PartitionLog | None,
    committed_offsets: LongArray,
    at_ms: LongArray | None,
    known: KnownCommits | None = None,
    *,
    read_committed: bool,
    now_ms: int,
) -> LagAccounts | None:
    """Return what `lag_accounts` computes for a log, listing its segments again if one is deleted
    meanwhile. `known` are all commits for the partition, those asked about where it is None.

    Return None without a log, and if its directory was deleted with its topic. Raises
    FileNotFoundError where segments are deleted faster than they can be read.
    """
    if at_ms is not None and known is None:
        known = KnownCommits.of(at_ms, committed_offsets)
    if log is None:
        return None

    def account(now: PartitionLog) -> LagAccounts:
        reached = None
        if at_ms is not None and known is not None:
            reached = known.reached_by(now, at_ms)
        return lag_accounts(
            now, committed_offsets, at_ms, reached, read_committed=read_committed, now_ms=now_ms
        )

    accounts = read_relisted(log, account)
    if accounts is None:
        _logger.warning(_DELETED, log.path)
    return accounts


def _numbers(rows: pa.Table, name: str) -> LongArray:
    """Return the numbers of a column, 0 for null."""
    return np.concatenate([integers(chunk) for chunk in rows.column(name).fill_null(_ZERO).chunks])


def _is_null(chunk: pa.Array) -> BoolArray:
    return ~present(chunk)


def _data_type(name: str) -> pa.DataType:
    if name == _END_FROM:
        return pa.string()
    return pa.int32() if name == "timestamp_type" else pa.int64()


def _account_column(accounts: LagAccounts, name: str, is_uncommitted: BoolArray) -> pa.Array:
    values = getattr(accounts, name)
    data_type = _data_type(name)
    if name == _END_FROM:
        return chosen([each.name.lower() for each in EndFrom], values, accounts.is_before_log)
    if name == _LOG_START:
        return fixed_width(values, data_type)
    is_null = accounts.is_before_log.copy()
    if name not in _ABOUT_LOG:
        is_null |= is_uncommitted
    if name in _OPTIONAL:
        is_null |= values == NO_VALUE
    return fixed_width(values, data_type, is_null)


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
