"""What a retention plan comes to, from view `retention_plan`."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.schemas import table_fields


def retention_plan(segments: DataFrame) -> DataFrame:
    """Return a row per segment: schemas/tables/retention_plan.json."""
    return segments.select(*(field["name"] for field in table_fields("retention_plan")))


def topic_totals(plan: DataFrame) -> DataFrame:
    """Return a row per topic: segments and bytes, those deleted, those undecided, and the
    partitions whose retention a timestamp in the future blocks."""
    is_blocked = F.col("reason") == "future_timestamp"
    topics = plan.groupBy("topic").agg(
        F.count("*").alias("segments"),
        F.count_if("goes").alias("segments_going"),
        F.sum("bytes").alias("bytes"),
        _bytes_where(F.col("goes")).alias("bytes_freed"),
        _bytes_where(F.col("goes").isNull()).alias("bytes_unknown"),
        F.count_if(is_blocked).alias("blocked_partitions"),
        F.max(F.when(is_blocked, F.col("largest_timestamp_ms"))).alias("blocked_by_ms"),
    )
    return topics.select(
        "topic",
        "segments",
        "segments_going",
        "bytes",
        "bytes_freed",
        "bytes_unknown",
        "blocked_partitions",
        "blocked_by_ms",
    )


def _bytes_where(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("bytes")).otherwise(0))
