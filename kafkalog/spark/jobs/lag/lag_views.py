"""The views of log directories that the lag of consumer groups is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.questions.group_parts import refuse_without_commits
from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperInput
from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
from kafkalog.spark.jobs.spark_views import SparkViews
from kafkalog.spark.log_rows import commits_complete_from
from kafkalog.spark.tables import local_rows
from kafkalog.storage.log_dir.metadata_snapshots import snapshot_before
from kafkalog.storage.log_dir.topic_directories import topic_directories
from kafkalog.storage.names import CLUSTER_METADATA, CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView


@dataclass(frozen=True)
class LagViews:
    """Views `offset_commits`, with what is committed to ZooKeeper, and `group_metadata`; `topics`,
    with cluster_id, topic, topic_id and is_deleted, by the directories; `complete_from`, how far
    back the commits are complete. `metadata` is view `messages` of `__cluster_metadata`,
    `zookeeper` has the views of ZooKeeper's files: None where the input does not have them."""

    commits: DataFrame
    group_metadata: DataFrame
    topics: DataFrame
    complete_from: DataFrame
    metadata: DataFrame | None
    zookeeper: ZookeeperLag | None


def lag_views(
    spark: SparkSession,
    log_dirs: Sequence[str],
    *,
    mode: str,
    zookeeper: ZookeeperInput | None = None,
) -> LagViews:
    """Return the views of all groups under the log directories and in ZooKeeper's. Raises
    LogDirError if the former lack the topic with the commits and the latter are not given."""
    logs = find_logs(log_dirs, strict=False)
    if zookeeper is None:
        refuse_without_commits(log_dirs, logs)

    planned = SparkViews(spark, log_dirs, logs, {"mode": mode, "subscribe": CONSUMER_OFFSETS})
    schema = "cluster_id string, topic string, topic_id string, is_deleted boolean"
    of_directories = local_rows(spark, sorted(set(topic_directories(logs)), key=str), schema)
    views = LagViews(
        planned.frame(AskedView("offset_commits")),
        planned.frame(AskedView("group_metadata")),
        of_directories.withColumn("created_ms", F.lit(None).cast("long")),
        commits_complete_from(spark, logs),
        metadata_messages(spark, log_dirs, logs, mode),
        zookeeper=None,
    )
    if zookeeper is not None:
        cluster_ids = {log.log_dir.cluster_id for log in logs}
        views = _with_zookeeper(views, ZookeeperLag(spark, zookeeper, cluster_ids))
    return views


def _with_zookeeper(views: LagViews, zookeeper: ZookeeperLag) -> LagViews:
    known = zookeeper.with_cluster_id
    return replace(
        views,
        commits=known(views.commits).unionByName(zookeeper.commits()),
        group_metadata=known(views.group_metadata),
        topics=known(views.topics),
        complete_from=known(views.complete_from).unionByName(zookeeper.complete_from()),
        zookeeper=zookeeper,
    )


def metadata_messages(
    spark: SparkSession, log_dirs: Sequence[str], logs: Sequence[PartitionLog], mode: str
) -> DataFrame | None:
    """Return view `messages` of `__cluster_metadata`, with the records of a snapshot if the log has
    lost its beginning; None where the input does not have it."""
    of_metadata = [log for log in logs if log.topic == CLUSTER_METADATA]
    if not of_metadata:
        return None
    planned = SparkViews(spark, log_dirs, logs, {"mode": mode})
    messages = planned.frame(AskedView("messages", options={"subscribe": CLUSTER_METADATA}))
    paths = [path for log in of_metadata if (path := snapshot_before(log)) is not None]
    if not paths:
        return messages
    reader = spark.read.format("kafkalog").option("view", "messages")
    return messages.unionByName(reader.option("mode", mode).load(paths))
