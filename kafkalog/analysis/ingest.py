"""Records of topics as rows of a table of their own. Rules: docs/ingest.md F530 to F535."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.schemas import table_fields

# What view `records` is asked for.
RECORD_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
    "timestampMs",
    "leaderEpoch",
    "brokerId",
)


def ingested_records(records: DataFrame, ranges: DataFrame, run: int) -> DataFrame:
    """Rows of schemas/tables/ingested_records.json: `ranges` has a row for each topic and
    partition, with the cluster and the path that it is from."""
    places = F.broadcast(ranges.select("topic", "partition", "cluster_id", "input_path"))
    rows = records.join(places, ["topic", "partition"]).withColumns(
        {
            "broker_id": F.col("brokerId"),
            "timestamp_ms": F.nullif(F.col("timestampMs"), F.lit(-1)),
            "leader_epoch": F.col("leaderEpoch"),
            "ingest_run": F.lit(run).cast("long"),
        }
    )
    return rows.select(*(field["name"] for field in table_fields("ingested_records")))


def manifest(ranges: DataFrame, records: DataFrame) -> DataFrame:
    """Rows of schemas/tables/ingest_manifest.json: the ranges with how many rows the table has of
    each of them; `records` are the rows of their run."""
    counts = records.groupBy("topic", "partition").agg(F.count("*").alias("rows"))
    rows = ranges.join(F.broadcast(counts), ["topic", "partition"], "left")
    rows = rows.withColumn("rows", F.coalesce("rows", F.lit(0)))
    return rows.select(*(field["name"] for field in table_fields("ingest_manifest")))


def by_topic(rows: DataFrame) -> DataFrame:
    """What a run wrote of each topic, to be shown."""
    found = rows.groupBy("topic").agg(
        F.count("*").alias("partitions"),
        F.sum("rows").alias("rows"),
        F.sum(F.col("until_offset") - F.col("from_offset")).alias("offsets"),
        F.count("finding").alias("findings"),
    )
    return found.orderBy(F.desc("rows"), "topic")
