"""The tables of a salvage, from the rows that its tasks give."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_PARTITION = ("cluster_id", "broker_id", "input_path", "topic", "partition")


def lost_ranges(salvaged: DataFrame) -> DataFrame:
    """A row per range that was not written: schemas/tables/lost_ranges.json."""
    return salvaged.select(*_PARTITION, F.inline("lost_ranges"))


def salvage_totals(salvaged: DataFrame) -> DataFrame:
    """One row: what was written, what was lost, and how many partitions a broker stumbles over."""
    return salvaged.agg(
        F.count("*").alias("partitions"),
        F.count_if(~F.col("broker_starts")).alias("start_errors"),
        F.count_if(F.col("topic_id").isNull()).alias("without_topic_id"),
        F.collect_set(F.when(F.col("compacted_bytes").isNotNull(), F.col("topic"))).alias(
            "compacted_topics"
        ),
        *(
            F.coalesce(F.sum(name), F.lit(0)).alias(name)
            for name in ("batches", "records", "kept_bytes", "lost_bytes", "compacted_bytes")
        ),
        F.coalesce(F.sum(F.size("lost_ranges")), F.lit(0)).alias("lost_ranges"),
    )
