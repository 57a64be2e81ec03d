"""The latest record of each key, from view `records`. Rules: docs/format.md F270 to F275."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from kafkalog.schemas import table_fields

KEYLESS = "keyless_records"
_KEY = ("topic", "partition", "key")


def latest_by_key(records: DataFrame) -> DataFrame:
    """Return the record with the highest offset of each key, tombstones included; null is not a
    key.

    `records` are of view `records`, and so are the columns of the result.
    """
    rest = [name for name in records.columns if name not in _KEY]
    latest = F.max_by(F.struct(*rest), "offset").alias("latest")
    found = records.where(F.col("key").isNotNull()).groupBy(*_KEY).agg(latest)
    return found.select(*_KEY, "latest.*")


def with_keyless_counted(records: DataFrame, observation: Observation) -> DataFrame:
    """Return the records; once they are read, the observation has as KEYLESS how many of them have
    no key and are in no state."""
    return records.observe(observation, F.count_if(F.col("key").isNull()).alias(KEYLESS))


def state(latest: DataFrame, sources: DataFrame) -> DataFrame:
    """Return rows of schemas/tables/state.json, deletes among them: `sources` has a row for each
    topic and partition, with the cluster and the path that it is from."""
    places = F.broadcast(sources.select("topic", "partition", "cluster_id", "input_path"))
    types = F.element_at(
        F.create_map(F.lit(0), F.lit("CreateTime"), F.lit(1), F.lit("LogAppendTime")),
        F.col("timestampType"),
    )
    rows = latest.join(places, ["topic", "partition"]).withColumns(
        {
            "broker_id": F.col("brokerId"),
            "timestamp_ms": F.nullif(F.col("timestampMs"), F.lit(-1)),
            "timestamp_type": types,
            "is_deleted": F.col("value").isNull(),
        }
    )
    return rows.select(*(field["name"] for field in table_fields("state")))


def state_totals(rows: DataFrame) -> DataFrame:
    """Return one row that sums a state up, for the verdict on the terminal."""
    return rows.agg(
        F.count_if(~F.col("is_deleted")).alias("keys"), F.count_if("is_deleted").alias("deletes")
    )


def in_partitions(rows: DataFrame, sources: DataFrame) -> DataFrame:
    """Return the rows of the topics and partitions that `sources` has."""
    kept = rows.join(F.broadcast(sources), ["topic", "partition"], "left_semi")
    # A join by names puts these first.
    return kept.select(rows.columns)


def newest(rows: DataFrame) -> DataFrame:
    """Return the rows that changed last in each partition first, to be shown: keys and values as
    text, or what they were decoded to."""
    known = {field["name"] for field in table_fields("state")}
    decoded = [name for name in rows.columns if name not in known]
    texts = [name for name in ("key", "value") if f"{name}_decoded" not in decoded]
    ordered = rows.orderBy(F.desc("offset"), "topic", "partition")
    ordered = ordered.withColumns({name: F.col(name).cast("string") for name in texts})
    shown = ("topic", "partition", *texts, "offset", "timestamp", "is_deleted", *decoded)
    return ordered.select(*shown)
