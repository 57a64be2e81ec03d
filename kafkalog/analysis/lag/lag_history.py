"""Statuses of groups from table `lag_history`. Rules: docs/format.md F332 and F338."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.lag.groups import GROUP_KEY
from kafkalog.analysis.readable import timestamp_column
from kafkalog.coordination.groups.burrow import BURROW_GROUP_RANKS, BURROW_GROUP_STATUSES
from kafkalog.coordination.groups.lag_status import GROUP_RANKS, GROUP_STATUSES, LAG_ERRORS

_Status = TypeVar("_Status", bound=Enum)
_END = "end"


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
