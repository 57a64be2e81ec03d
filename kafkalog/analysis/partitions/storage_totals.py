"""What lies on disk by topic, from view `segments`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

# Column `status` of what a broker that starts has in its log.
_SERVED = ("active", "live", "takes_over")


def topic_storage(segments: DataFrame) -> DataFrame:
    """Return a row per topic, of the segments that a broker serves: topic, copies (partitions, each
    replica counted), partitions, segments, bytes, and the first and largest timestamp by the
    headers."""
    return (
        segments.where(_is_served())
        .groupBy("topic")
        .agg(
            F.count_distinct("directory").alias("copies"),
            F.count_distinct("partition").alias("partitions"),
            F.count("*").alias("segments"),
            F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
            F.min("first_timestamp_ms").alias("first_timestamp_ms"),
            F.max("max_timestamp_ms").alias("max_timestamp_ms"),
        )
    )


def largest_topics(totals: DataFrame, count: int) -> DataFrame:
    """Return those of the most bytes of topic_storage, the largest first."""
    return totals.orderBy(F.desc("bytes"), "topic").limit(count)


def storage_totals(totals: DataFrame) -> DataFrame:
    """Return one row: what all topics of topic_storage come to."""
    sums = ("copies", "segments", "bytes")
    return totals.agg(
        F.count("*").alias("topics"),
        F.coalesce(F.sum("partitions"), F.lit(0)).alias("partitions"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in sums),
    )


def unserved_storage(segments: DataFrame) -> DataFrame:
    """Return one row about log files that no broker serves any more, such as those with the ending
    .deleted: segments, bytes."""
    rest = segments.where(~_is_served() & F.col("size").isNotNull())
    return rest.agg(
        F.count("*").alias("segments"), F.coalesce(F.sum("size"), F.lit(0)).alias("bytes")
    )


def longest_copies(segments: DataFrame) -> DataFrame:
    """Return the directory of each partition's longest replica: it reaches furthest, and of such it
    has most bytes. A file in a directory of another name is a partition of its own."""
    key = ("topic", "partition", "directory")
    reach = F.struct(
        F.coalesce(F.max("last_offset"), F.lit(-1)), F.coalesce(F.sum("size"), F.lit(0))
    )
    served = segments.where(_is_served())
    copies = served.groupBy(*key).agg(reach.alias("reach"))
    longest = F.max_by("directory", F.struct("reach", "directory")).alias("directory")
    nameless = F.when(F.col("topic").isNull(), F.col("directory"))
    return copies.groupBy("topic", "partition", nameless).agg(longest).select("directory")


def owners(segments: DataFrame) -> DataFrame:
    """Return the clusters and brokers that the files are of: cluster_id, broker_id."""
    return segments.select("cluster_id", "broker_id").distinct()


def _is_served() -> Column:
    return F.col("status").isin(*_SERVED)


def shown_topic(topics: Sequence[str | None]) -> Column:
    """Return the topic where it is one of these, null for all others."""
    known = [topic for topic in topics if topic is not None]
    return F.when(F.col("topic").isin(known), F.col("topic")).alias("shown_topic")
