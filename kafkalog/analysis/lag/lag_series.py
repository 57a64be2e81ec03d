"""Lag of groups over time, a point per group and moment, and their rebalances."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def commit_span(commits: DataFrame) -> DataFrame:
    """Return one row about view `offset_commits`: commits in effect, and their first_ms and
    last_ms."""
    time = F.coalesce("effective_timestamp_ms", "commit_timestamp_ms", "record_timestamp_ms")
    return commits.where((F.col("effect") == "applied") & (time > 0)).agg(
        F.count("*").alias("commits"), F.min(time).alias("first_ms"), F.max(time).alias("last_ms")
    )


def lag_series(history: DataFrame, groups: Sequence[str]) -> DataFrame:
    """Return a row per group and time of table `lag_history`: group_id, at_ms, the records that the
    group had left to read in the partitions where that is known, unknown_partitions, the number of
    the others, and the greatest time_lag_ms."""
    chosen = history.where(
        F.col("event").isin("tick", "end") & F.col("group_id").isin(list(groups))
    )
    return (
        chosen.groupBy("group_id", "at_ms")
        .agg(
            F.sum("readable_records").alias("records"),
            F.count_if(F.col("readable_records").isNull()).alias("unknown_partitions"),
            F.max("time_lag_ms").alias("time_lag_ms"),
        )
        .orderBy("group_id", "at_ms")
    )


def rebalances(generations: DataFrame, groups: Sequence[str], count: int) -> DataFrame:
    """Return the last `count` generations of each of these groups, from table `group_generations`:
    group_id, at_ms, generation, members, state."""
    newest = Window.partitionBy("group_id").orderBy(F.desc("record_offset"))
    return (
        generations.where(F.col("group_id").isin(list(groups)))
        .withColumn("number", F.row_number().over(newest))
        .where(F.col("number") <= count)
        .select(
            "group_id",
            F.col("record_timestamp_ms").alias("at_ms"),
            *("generation", "members", "state", "partitions_moved"),
        )
        .orderBy("group_id", "at_ms")
    )
