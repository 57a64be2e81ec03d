"""Lag and status of groups over time, from view `offset_commits`. Rules: docs/format.md F330 to
F338.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TypeVar

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kafkalog.analysis.lag.consumer_lag import lag_times
from kafkalog.analysis.lag.groups import GROUP_KEY, offset_storage
from kafkalog.analysis.readable import timestamp_column
from kafkalog.analysis.sentences import sentence_column
from kafkalog.coordination.groups.burrow import (
    BURROW_GROUP_RANKS,
    BURROW_GROUP_STATUSES,
    MS_PER_SECOND,
    BurrowRule,
    BurrowSettings,
    BurrowStatus,
)
from kafkalog.coordination.groups.commit_events import EventKind, HistoryMoments
from kafkalog.coordination.groups.lag_status import GROUP_RANKS, GROUP_STATUSES, LAG_ERRORS
from kafkalog.schemas import table_fields

_KEY = (*GROUP_KEY, "topic", "partition")
_Status = TypeVar("_Status", bound=Enum)
_COMMIT, _TICK, _END = "commit", "tick", "end"


def lag_events(commits: DataFrame, moments: HistoryMoments, burrow: BurrowSettings) -> DataFrame:
    """Return the events to judge, from rows of view `offset_commits`: a row per event, with the
    commit in effect, its EventKind in `kind`, and

    - `event`: what it is in the table, null if it is not in the table
    - `moment_ms`: when it was; `question_ms`: the time at which the log is examined
    - `event_ms`: when the commit took effect
    - `group_commit_ms`: the time of the group's last commit, of any partition
    """
    of_key = Window.partitionBy(*_KEY).orderBy("effective_offset")
    moment = F.coalesce("effective_timestamp_ms", "commit_timestamp_ms", "record_timestamp_ms")
    applied = commits.where((F.col("effect") == "applied") & (moment <= moments.until_ms))
    # A negative offset is none: F324.
    is_deletion = F.col("is_tombstone") | F.coalesce(F.col("committed_offset") < 0, F.lit(False))
    rows = applied.select(
        *("broker_id", "input_path", "record_offset", *_KEY),
        is_deletion.alias("is_tombstone"),
        F.when(~is_deletion, F.col("committed_offset")).alias("committed_offset"),
        *("commit_timestamp_ms", "effective_offset", moment.alias("event_ms")),
        F.max("commit_timestamp_ms").over(Window.partitionBy(*GROUP_KEY)).alias("group_commit_ms"),
        F.lead(moment).over(of_key).alias("next_ms"),
    )
    found = rows.select("*", F.explode(_events(moments, burrow)).alias("found")).select(
        "*", "found.*"
    )
    # A sample is older than the commit: the log may not have reached its offset then.
    is_older = F.col("kind") == int(EventKind.SAMPLE)
    committed = F.when(~is_older, F.col("committed_offset"))
    return found.withColumn("committed_offset", committed).drop("found", "next_ms", "is_tombstone")


def _events(moments: HistoryMoments, burrow: BurrowSettings) -> Column:
    """Return the events of a commit, until the next one."""
    by_commit, here = moments.every_ms is None, F.col("event_ms")
    deletion = F.array(_event(EventKind.DELETION, None, here))
    commit = F.array(_event(EventKind.COMMIT, _COMMIT if by_commit else None, here))
    # Else no time has passed since the last commit, and Burrow does not look at older ends.
    is_older = _whole_seconds(here) > F.col("commit_timestamp_ms")
    sampled = F.concat(F.array(_sample(here, burrow)), commit)
    commit = F.when(is_older | F.lit(burrow.min_distance_s > 0), sampled).otherwise(commit)
    until = F.lit(moments.until_ms).cast("long")
    is_last = F.col("next_ms").isNull()
    end = F.when(is_last, _ticks(F.array(until), _END, burrow, is_now=moments.ends_now))
    later = F.coalesce(end, F.array().cast(_EVENTS))
    if moments.every_ms is not None:
        times = _times(moments.since_ms, moments.every_ms, until)
        later = F.concat(_ticks(times, _TICK, burrow), later)
    return F.when(F.col("is_tombstone"), deletion).otherwise(F.concat(commit, later))


_EVENTS = (
    "array<struct<kind int, event string, moment_ms bigint, question_ms bigint, is_now boolean>>"
)


def _event(
    kind: EventKind,
    event: str | None,
    moment: Column,
    question: Column | None = None,
    *,
    is_now: bool = False,
) -> Column:
    return F.struct(
        F.lit(int(kind)).alias("kind"),
        F.lit(event).cast("string").alias("event"),
        moment.alias("moment_ms"),
        (moment if question is None else question).alias("question_ms"),
        F.lit(is_now).alias("is_now"),
    )


def _whole_seconds(time_ms: Column) -> Column:
    """Return the time by Burrow's clock."""
    return time_ms - time_ms % MS_PER_SECOND


def _sample(moment: Column, burrow: BurrowSettings) -> Column:
    """Return the sample of the oldest end that Burrow holds: the lowest, for ends never fall."""
    held_ms = (burrow.intervals - 1) * burrow.offset_refresh_s * MS_PER_SECOND
    return _event(EventKind.SAMPLE, None, moment, moment - held_ms)


def _ticks(times: Column, event: str, burrow: BurrowSettings, *, is_now: bool = False) -> Column:
    def both(moment: Column) -> Column:
        tick = _event(EventKind.TICK, event, moment, is_now=is_now)
        return F.array(_sample(moment, burrow), tick)

    return F.flatten(F.transform(times, both))


def _times(since_ms: int, every_ms: int, until: Column) -> Column:
    """Return the multiples of `every_ms` before the end at which the commit was in effect."""
    begin = F.greatest(F.col("event_ms"), F.lit(since_ms))
    first = (F.ceil(begin / every_ms) * every_ms).cast("long")
    last = F.least(F.coalesce("next_ms", until), until) - 1
    times = F.sequence(first, last, F.lit(every_ms).cast("long"))
    return F.when(first <= last, times).otherwise(F.array().cast("array<bigint>"))


def lag_history(judged: DataFrame, moments: HistoryMoments, burrow: BurrowSettings) -> DataFrame:
    """Return the rows of table `lag_history`, schemas/tables/lag_history.json, from events with
    accounts and statuses."""
    at_ms = F.col("moment_ms")
    silent_ms = _whole_seconds(at_ms) - F.col("group_commit_ms")
    expire_ms = burrow.expire_group_s * MS_PER_SECOND
    is_expired = F.coalesce((F.col("event") == _END) & (silent_ms > expire_ms), F.lit(False))
    expired = sentence_column(
        BurrowRule.EXPIRED.words, F.when(is_expired, silent_ms), F.lit(expire_ms)
    )
    rows = judged.where(F.col("event").isNotNull() & (at_ms >= moments.since_ms)).withColumns(
        {
            "at_ms": at_ms,
            "offset_storage": offset_storage(),
            **lag_times(at_ms),
            "burrow_status": F.when(is_expired, BurrowStatus.NOTFOUND.value).otherwise(
                F.col("burrow_status")
            ),
            "burrow_reason": F.when(is_expired, expired).otherwise(F.col("burrow_reason")),
        }
    )
    return rows.select(*(field["name"] for field in table_fields("lag_history")))


def newest_statuses(history: DataFrame) -> DataFrame:
    """Return a row per group from the last rows of its partitions, the worst first: group_id,
    status (F338), burrow_status (F332), partitions, those with an error, records left to read, the
    time of the first of them, the last commit, and the reason of the worst partition."""
    is_error = F.col("status").isin([status.value for status in LAG_ERRORS])
    worst = F.max_by(
        F.struct("topic", "partition", "reason"),
        F.struct(_rank("status", GROUP_RANKS), F.coalesce("readable_records", F.lit(-1))),
    )
    next_record = timestamp_column(F.col("next_timestamp_ms"))
    by_group = history.where(F.col("event") == _END).groupBy(*GROUP_KEY)
    found = by_group.agg(
        _worst("status", GROUP_STATUSES, _rank("status", GROUP_RANKS)),
        _worst(
            *("burrow_status", BURROW_GROUP_STATUSES), _rank("burrow_status", BURROW_GROUP_RANKS)
        ),
        F.count("*").alias("partitions"),
        F.count_if(is_error).alias("errors"),
        F.sum("readable_records").alias("readable_records"),
        F.min(F.when(F.col("readable_records") > 0, next_record)).alias("behind_since"),
        F.max(timestamp_column(F.col("commit_timestamp_ms"))).alias("last_commit"),
        worst.alias("worst"),
    )
    return found.orderBy(
        _rank("status", GROUP_RANKS).desc(), F.desc("readable_records"), "group_id"
    ).select(
        *("group_id", "status", "burrow_status", "partitions", "errors", "readable_records"),
        *("behind_since", "last_commit", "worst.topic", "worst.partition", "worst.reason"),
    )


def _rank(status: str, ranks: Mapping[_Status, int]) -> Column:
    """Return the place of a column's status among the statuses of groups."""
    return F.coalesce(*(F.when(F.col(status) == each.value, rank) for each, rank in ranks.items()))


def _worst(status: str, statuses: Sequence[Enum], rank: Column) -> Column:
    """Return a group's status, given the ranks of those of its partitions."""
    names = F.array(*(F.lit(each.value) for each in statuses))
    return F.get(names, F.max(rank)).alias(status)


def status_totals(statuses: DataFrame) -> DataFrame:
    """Return how many groups have each status, from rows of newest_statuses."""
    return statuses.groupBy("status").agg(F.count("*").alias("groups"))
