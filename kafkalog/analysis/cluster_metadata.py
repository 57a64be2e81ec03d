"""What KRaft's metadata says of topics and of who leads partitions, from the rows of topic
`__cluster_metadata` in view `messages`, of its log and of snapshots. Rules: docs/format.md F323,
F329.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

METADATA_TOPIC = "__cluster_metadata"
_BEGIN, _END, _ABORT = (f"{name}TransactionRecord" for name in ("Begin", "End", "Abort"))
_TOPICS = ("TopicRecord", "RemoveTopicRecord")
_PARTITIONS = ("PartitionRecord", "PartitionChangeRecord")


def records_in_force(messages: DataFrame, at_ms: int | None = None) -> DataFrame:
    """The records about topics and partitions that count, of those written up to `at_ms`: not what
    stands in a transaction that was aborted or has not ended (F195). Column `place` has their
    order: what a snapshot says comes before the log's offset up to which it speaks.
    """
    records = messages.where(F.col("topic") == METADATA_TOPIC).where(
        F.col("record_name").isin(*_TOPICS, *_PARTITIONS, _BEGIN, _END, _ABORT)
    )
    if at_ms is not None:
        records = records.where(F.col("timestamp_ms") <= at_ms)
    ordered = Window.partitionBy("cluster_id", "input_path", _snapshot_end()).orderBy("offset")
    bracket = F.when(F.col("record_name").isin(_BEGIN, _END, _ABORT), F.col("record_name"))
    before = F.last(bracket, ignorenulls=True).over(ordered)
    behind = F.first(bracket, ignorenulls=True).over(
        ordered.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    )
    marked = records.withColumn("before", before).withColumn("behind", behind)
    is_open = F.coalesce(F.col("before") == _BEGIN, F.lit(False))
    has_ended = F.coalesce(F.col("behind") == _END, F.lit(False))
    in_force = marked.where(~is_open | has_ended).where(bracket.isNull())
    return in_force.select(
        "cluster_id",
        F.struct(
            F.coalesce(_snapshot_end(), F.col("offset")).alias("log_offset"),
            _snapshot_end().isNull().alias("is_in_log"),
            "offset",
        ).alias("place"),
        "record_name",
        _field("topicId", "string").alias("topic_id"),
        _field("name", "string").alias("name"),
        _field("partitionId", "int").alias("number"),
        _field("leader", "int").alias("leader"),
    )


def metadata_topics(in_force: DataFrame) -> DataFrame:
    """A row per topic id: cluster_id, topic, topic_id, is_deleted; the topic is null where the
    record that named it is gone."""
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
    """A row per partition of a topic that was not deleted: cluster_id, topic, topic_id, partition
    and leader, the broker that led it last: one that stops leaves it without a leader (-1)."""
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
    """The offset in the log up to which a row's snapshot speaks, null for a row of the log."""
    found = F.regexp_extract("file", r"([0-9]{20})-[0-9]{10}\.checkpoint$", 1)
    return F.when(found != "", found.cast("long"))


def _field(name: str, data_type: str) -> Column:
    return F.get_json_object("value", f"$.{name}").cast(data_type)
