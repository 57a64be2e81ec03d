"""What KRaft's metadata says of topics and of who leads partitions, from the rows of topic
`__cluster_metadata` in view `messages`, of its log and of snapshots. Rules: docs/format.md F323,
F329; which records are in force: F195.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.messages import metadata_transactions as of_values
from kafkalog.messages.metadata_transactions import TRANSACTION_RECORDS

METADATA_TOPIC = "__cluster_metadata"
_TOPICS = ("TopicRecord", "RemoveTopicRecord")
_PARTITIONS = ("PartitionRecord", "PartitionChangeRecord")


class _Record(NamedTuple):
    name: str
    row: int
    is_control: bool = False  # none of the types that are read here is


def metadata_in_force(messages: DataFrame, at_ms: int | None = None) -> DataFrame:
    """Return the records about topics and partitions that are in force, of those written up to
    `at_ms`. Column `place` has their order: what a snapshot says comes before the log's offset up
    to which it speaks.
    """
    records = messages.where(F.col("topic") == METADATA_TOPIC).where(
        F.col("record_name").isin(*_TOPICS, *_PARTITIONS, *TRANSACTION_RECORDS)
    )
    if at_ms is not None:
        records = records.where(F.col("timestamp_ms") <= at_ms)
    read = records.select(
        *("cluster_id", "input_path", "offset", "record_name"),
        _snapshot_end().alias("snapshot_end"),
        _field("topicId", "string").alias("topic_id"),
        _field("name", "string").alias("name"),
        _field("partitionId", "int").alias("number"),
        _field("leader", "int").alias("leader"),
    )
    # A task holds a whole log: without the values, which can be large.
    by_file = read.groupBy("cluster_id", "input_path", "snapshot_end")
    return by_file.applyInArrow(_rows_in_force, read.schema).select(
        "cluster_id",
        F.struct(
            F.coalesce("snapshot_end", "offset").alias("log_offset"),
            F.col("snapshot_end").isNull().alias("is_in_log"),
            "offset",
        ).alias("place"),
        *("record_name", "topic_id", "name", "number", "leader"),
    )


def _rows_in_force(rows: pa.Table) -> pa.Table:
    """Return the rows of a log, or of a snapshot, that are in force."""
    in_order = rows.sort_by("offset")
    names = in_order["record_name"].to_pylist()
    found = of_values.records_in_force(_Record(name, row) for row, name in enumerate(names))
    return in_order.take(pa.array([record.row for record in found], pa.int64()))


def metadata_topics(in_force: DataFrame) -> DataFrame:
    """Return a row per topic id: cluster_id, topic, topic_id, is_deleted. The topic is null where
    the record that named it was removed."""
    about = in_force.where(F.col("record_name").isin(*_TOPICS))
    return (
        about.groupBy("cluster_id", "topic_id")
        .agg(
            F.max("name").alias("topic"),
            F.bool_or(F.col("record_name") == _TOPICS[1]).alias("is_deleted"),
        )
        .select("cluster_id", "topic", "topic_id", "is_deleted")
    )


def partition_leaders(in_force: DataFrame) -> DataFrame:
    """Return a row per partition of a topic that was not deleted: cluster_id, topic, topic_id,
    partition and leader, the broker that led it last. A broker that stops leaves its partitions
    without a leader (-1)."""
    # A change that leaves the leader as it is does not name it.
    led = in_force.where(F.col("record_name").isin(*_PARTITIONS) & (F.col("leader") >= 0))
    leaders = led.groupBy(
        F.col("cluster_id").alias("of_cluster_id"),
        F.col("topic_id").alias("of_topic_id"),
        F.col("number").alias("partition"),
    ).agg(F.max_by("leader", "place").alias("leader"))
    topics = metadata_topics(in_force).where("NOT is_deleted")
    same = F.col("topic_id") == F.col("of_topic_id")
    return leaders.join(
        topics, same & F.col("cluster_id").eqNullSafe(F.col("of_cluster_id"))
    ).select("cluster_id", "topic", "topic_id", "partition", "leader")


def _snapshot_end() -> Column:
    """Return the offset up to which a row's snapshot speaks, null for a row of the log."""
    found = F.regexp_extract("file", r"([0-9]{20})-[0-9]{10}\.checkpoint$", 1)
    return F.when(found != "", found.cast("long"))


def _field(name: str, data_type: str) -> Column:
    return F.get_json_object("value", f"$.{name}").cast(data_type)
