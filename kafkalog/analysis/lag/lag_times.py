"""Lag in time, from accounts of lag. Rule: docs/format.md F315."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def lag_times(at_ms: Column) -> dict[str, Column]:
    """The columns time_lag_ms, at a moment, freshness_ms and wait_before_commit_ms."""
    left = F.col("readable_records") + F.col("in_tiered_storage") + F.col("damaged")
    age = F.when(left == 0, F.lit(0)).otherwise(at_ms - F.col("next_timestamp_ms"))
    return {
        "time_lag_ms": age.cast("long"),
        "freshness_ms": F.col("newest_timestamp_ms") - F.col("next_timestamp_ms"),
        "wait_before_commit_ms": F.col("commit_timestamp_ms") - F.col("consumed_timestamp_ms"),
    }
