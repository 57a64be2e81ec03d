"""Rows of table `consumer_lag` from the commits of groups and the logs of their topics, and their
totals. Rules: docs/format.md F310 to F327; columns: schemas/tables/consumer_lag.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import (
    Numbers,
    booleans,
    chosen,
    fixed_width,
    integers,
    no_rows,
    of_values,
    scalar,
    strings,
)
from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.coordination.groups.commit_status import COUNTED, NO_COMMIT, KnownTopics
from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.inspection.groups.commits_in_effect import HAS_OPEN_COMMIT
from kafkalog.inspection.groups.placed_commits import DELIVERY_COMPLETE, with_statuses
from kafkalog.inspection.lag.lag_columns import lag_logs, lag_times, with_accounts
from kafkalog.inspection.lag.resumed_commits import RESUMES_AT, with_resumes

TABLE = "consumer_lag"
_SCHEMA = arrow_schema(TABLE)
LOG_COLUMNS = ("topic", "partition")
# The names of numbers that decide where a log ended at a past time.
_BY_CLOCKS = ["create_time", "consumed"]
_STORAGES = ["kafka", "zookeeper"]
_ZERO, _NO = scalar(0, pa.int64()), scalar(False, pa.bool_())

_Log = tuple[str, int]


class LogPlace(NamedTuple):
    """Where the log of a partition is, and the broker whose it is."""

    path: str
    broker_id: int | None


@dataclass(slots=True)
class LagTotals:
    """How many rows there are, and of those whose commit counts, how many lag, the records left to
    read, the most in one partition, and the greatest lag in time; how many commits are stale or
    expired, and for how many the lag is not known; in how many partitions producers' clocks or
    committed offsets decide a log's end at a past time, in how many offsets were deleted unread,
    in how many damage hides some, in how many consumers do not continue at their commit, in how
    many a commit waits for the end of its transaction, and in how many a group is ahead of the
    log."""

    partitions: int = 0
    behind: int = 0
    records: int = 0
    most_records: int | None = None
    time_lag_ms: int | None = None
    stale: int = 0
    expired: int = 0
    unknown: int = 0
    by_clocks: int = 0
    below_log_start: int = 0
    damaged: int = 0
    resumed: int = 0
    waiting: int = 0
    ahead: int = 0

    @classmethod
    def of(cls, rows: pa.Table) -> LagTotals:
        """Return the totals of rows of the table."""
        status = rows["commit_status"]
        counts = _flags(pc.is_in(status, strings(list(COUNTED))))
        readable, time_lag = Numbers.of(rows["readable_records"]), Numbers.of(rows["time_lag_ms"])
        is_behind = counts & readable.above(0)
        of_commits = _flags(pc.not_equal(status, scalar(NO_COMMIT, pa.string())))
        is_unknown = rows["committed_offset"].is_valid(), rows["lag"].is_null()
        is_inferred = pc.is_in(rows["high_watermark_from"], strings(_BY_CLOCKS))
        return cls(
            partitions=len(rows),
            behind=int(np.count_nonzero(is_behind)),
            records=int(readable.values[counts].sum()),
            most_records=readable.largest(is_behind),
            time_lag_ms=time_lag.largest(is_behind),
            stale=int(np.count_nonzero(~counts & of_commits)),
            expired=int(np.count_nonzero(_flags(pc.is_in(status, strings(["expired"]))))),
            unknown=int(np.count_nonzero(_flags(pc.and_(*is_unknown)))),
            by_clocks=int(np.count_nonzero(_flags(is_inferred))),
            below_log_start=_positive(rows["below_log_start"], counts),
            damaged=_positive(rows["damaged"], counts),
            resumed=int(np.count_nonzero(counts & _flags(rows[RESUMES_AT].is_valid()))),
            waiting=int(np.count_nonzero(_flags(rows[HAS_OPEN_COMMIT]))),
            ahead=int(np.count_nonzero(Numbers.of(rows["ahead_of_log"]).above(0))),
        )

    def add(self, other: LagTotals) -> None:
        """Take the totals of other rows."""
        for field in fields(self):
            own, of_other = getattr(self, field.name), getattr(other, field.name)
            if field.name in ("most_records", "time_lag_ms"):
                known = [number for number in (own, of_other) if number is not None]
                setattr(self, field.name, max(known, default=None))
            else:
                setattr(self, field.name, own + of_other)


def lag_table(
    rows: pa.Table, places: Mapping[_Log, LogPlace], topics: KnownTopics, question: LagQuestion
) -> pa.Table:
    """Return the rows of the table for rows of PLACED_SCHEMA: all that there are about each of
    their logs. `places` has the logs in the input."""
    ordered, runs = by_log(rows)
    at_ms = fixed_width(np.full(len(rows), question.at_ms), pa.int64())
    given = {name: ordered[name] for name in ("committed_offset", "leader_epoch")}
    asked = pa.table({**given, "at_ms": at_ms})
    # After the commits were read, so that no log ends before one of them.
    found = [key for key, *_ in runs if key in places]
    logs = dict(zip(found, lag_logs([places[key].path for key in found]), strict=True))
    accounts, brokers = [], []
    for key, begin, end in runs:
        place = places.get(key)
        brokers.append(None if place is None else place.broker_id)
        log = logs.get(key)
        account = with_accounts(
            asked.slice(begin, end - begin),
            log,
            read_committed=question.read_committed,
            now_ms=question.now_ms,
            at=None if question.as_of_ms is None else "at_ms",
        )
        accounts.append(
            with_resumes(
                account,
                log if question.as_of_ms is None else None,
                read_committed=question.read_committed,
                now_ms=question.now_ms,
            )
        )
    counted = pa.concat_tables(accounts).drop_columns([*given])
    for name in counted.column_names:
        ordered = ordered.append_column(name, counted[name])
    ordered = _delivered(ordered)
    lengths = [end - begin for _, begin, end in runs]
    of_log = fixed_width(np.repeat(np.arange(len(runs)), lengths), pa.int64())
    ordered = with_statuses(ordered, topics, question)
    known = {name: ordered[name] for name in ordered.column_names} | lag_times(ordered)
    known["log_broker_id"] = of_values(brokers, pa.int32()).take(of_log)
    is_zookeeper = _flags(ordered["internal_partition"].is_null())
    known["offset_storage"] = chosen(_STORAGES, is_zookeeper.astype(np.int32))
    return pa.table([known[name] for name in _SCHEMA.names], schema=_SCHEMA).combine_chunks()


def _delivered(rows: pa.Table) -> pa.Table:
    """Return rows whose lag and records to read are without those that a share group needs no more,
    null where it is not known how many these are. F780"""
    is_share = pc.equal(rows["group_type"], scalar("share", pa.string())).fill_null(_NO)
    if not _flags(is_share).any():
        return rows
    complete = rows[DELIVERY_COMPLETE]
    readable = pc.max_element_wise(
        pc.subtract(rows["readable_records"], complete), _ZERO, skip_nulls=False
    )
    # The records are known by the log, where the group does not say how many it has delivered.
    known = pc.coalesce(readable, rows["readable_records"])
    lag = pc.subtract(rows["lag"], complete)
    # A state can be read later than the log, and has delivered more than that has.
    ahead = pc.coalesce(pc.max_element_wise(pc.negate(lag), _ZERO, skip_nulls=False), _ZERO)
    of_share = {"lag": lag, "readable_records": known, "ahead_of_log": ahead}
    # Where nothing is left to read, the first record after the begin is delivered, not next.
    is_left = pc.greater(known, _ZERO)
    for name in ("next_offset", "next_timestamp_ms", "timestamp_type"):
        of_share[name] = pc.if_else(is_left, rows[name], scalar(None, rows[name].type))
    for name, left in of_share.items():
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, pc.if_else(is_share, left, rows[name]))
    return rows


def by_log(rows: pa.Table) -> tuple[pa.Table, list[tuple[_Log, int, int]]]:
    """Return rows with a topic and a partition in the order of these, and for each log its name and
    the numbers of its first row and of the next one after its last."""
    if not len(rows):
        return rows, []
    ordered = in_order(rows, LOG_COLUMNS)
    topics = ordered["topic"].combine_chunks().dictionary_encode()
    codes, numbers = integers(topics.indices), integers(ordered["partition"].combine_chunks())
    is_next = (codes[1:] != codes[:-1]) | (numbers[1:] != numbers[:-1])
    borders = [0, *(np.flatnonzero(is_next) + 1).tolist(), len(rows)]
    names = topics.dictionary.to_pylist()
    runs = [
        ((names[codes[begin]], int(numbers[begin])), begin, end) for begin, end in pairwise(borders)
    ]
    return ordered, runs


def in_order(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return rows in the order of columns of strings or integers: of strings there are few
    different ones, which are compared once."""
    rows = rows.combine_chunks()
    numbers = [_ranks(rows[name].combine_chunks()) for name in reversed(names)]
    return rows.take(fixed_width(np.lexsort(numbers), pa.int64()))


def _ranks(values: pa.Array) -> LongArray:
    """Return a number for each value, in their order."""
    coded = values.dictionary_encode(null_encoding="encode")
    ranks = np.empty(len(coded.dictionary), dtype=np.int64)
    ranks[integers(pc.sort_indices(coded.dictionary))] = np.arange(len(ranks))
    found: LongArray = ranks[integers(coded.indices)]
    return found


class LagSummary(NamedTuple):
    """The totals of rows of the table, and those rows with the most to read."""

    totals: LagTotals
    most_behind: pa.Table

    @classmethod
    def of(cls, rows: pa.Table, show: int) -> LagSummary:
        """Return the summary of rows, `show` of them in it."""
        return cls(LagTotals.of(rows), most_behind([rows], show))


def summed(summaries: Sequence[LagSummary], show: int) -> LagSummary:
    """Return the summary of the rows of several."""
    totals = LagTotals()
    for each in summaries:
        totals.add(each.totals)
    return LagSummary(totals, most_behind([each.most_behind for each in summaries], show))


def most_behind(rows: Iterable[pa.Table], count: int) -> pa.Table:
    """Return so many rows of the table with the most to read, in no certain order."""
    found = pa.concat_tables([no_rows(_SCHEMA), *rows]).combine_chunks()
    if len(found) <= count:
        return found
    keys = [("readable_records", "descending")]
    keys += [(name, "ascending") for name in ("group_id", *LOG_COLUMNS)]
    return found.take(pc.sort_indices(found, sort_keys=keys)[:count])


def _flags(column: pa.ChunkedArray) -> BoolArray:
    """Return a column of booleans, False for null."""
    return booleans(column.fill_null(_NO).combine_chunks())


def _positive(column: pa.ChunkedArray, counts: BoolArray) -> int:
    return int(np.count_nonzero(counts & Numbers.of(column).above(0)))
