"""What is read of log directories to tell the lag of consumer groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from kafkalog.errors import LogDirError
from kafkalog.spark.lag_reading import log_places
from kafkalog.spark.offsets_topic import commits_complete_from
from kafkalog.storage.files import list_directory
from kafkalog.storage.log_dir import PartitionLog, find_partitions, topic_id
from kafkalog.storage.metadata_snapshots import snapshot_before
from kafkalog.storage.names import CLUSTER_METADATA, CONSUMER_OFFSETS, partition_name


@dataclass(frozen=True)
class LagViews:
    """Views `offset_commits` and `group_metadata`; `places` of the partitions' logs; `topics`, with
    cluster_id, topic, topic_id and is_deleted, as directories tell them; `complete_from`, how far
    back the commits are complete, kept in memory. `metadata` is view `messages` of
    `__cluster_metadata`, None where the input does not have it."""

    commits: DataFrame
    group_metadata: DataFrame
    places: DataFrame
    topics: DataFrame
    complete_from: DataFrame
    metadata: DataFrame | None


def lag_views(spark: SparkSession, log_dirs: Sequence[str], *, mode: str) -> LagViews:
    """The views of all groups under the log directories. Raises LogDirError where these do not have
    the topic that commits are in."""

    def view(name: str, topic: str) -> DataFrame:
        reader = spark.read.format("kafkalog").option("view", name).option("mode", mode)
        return reader.option("subscribe", topic).load(list(log_dirs))

    logs = find_partitions(log_dirs, strict=False)
    topics = {log.topic for log in logs}
    if CONSUMER_OFFSETS not in topics:
        raise LogDirError(
            f"{', '.join(log_dirs)}: no partition of {CONSUMER_OFFSETS} there, which consumer "
            "groups commit to; give the log directories of all brokers"
        )
    schema = "cluster_id string, topic string, topic_id string, is_deleted boolean"
    has_metadata = CLUSTER_METADATA in topics
    return LagViews(
        view("offset_commits", CONSUMER_OFFSETS),
        view("group_metadata", CONSUMER_OFFSETS),
        log_places(spark, logs),
        spark.createDataFrame(sorted(set(_topics(logs)), key=str), schema),
        commits_complete_from(spark, logs).persist(),
        _with_snapshots(view("messages", CLUSTER_METADATA), logs, mode) if has_metadata else None,
    )


def _with_snapshots(messages: DataFrame, logs: Sequence[PartitionLog], mode: str) -> DataFrame:
    """The metadata, with what a snapshot says where the log has lost its beginning."""
    of_metadata = [log for log in logs if log.topic == CLUSTER_METADATA]
    paths = [path for log in of_metadata if (path := snapshot_before(log)) is not None]
    if not paths:
        return messages
    reader = messages.sparkSession.read.format("kafkalog").option("view", "messages")
    return messages.unionByName(reader.option("mode", mode).load(paths))


def _topics(
    logs: Sequence[PartitionLog],
) -> Iterator[tuple[str | None, str | None, str | None, bool]]:
    """The topics that have a directory, and those of which one is about to be deleted."""
    for log in (*logs, *_being_deleted(logs)):
        yield log.log_dir.cluster_id, log.topic, topic_id(log), not log.is_live


def _being_deleted(logs: Sequence[PartitionLog]) -> list[PartitionLog]:
    entries = (
        entry for path in {log.log_dir.path for log in logs} for entry in list_directory(path)
    )
    paths = [
        entry.path
        for entry in entries
        if entry.is_directory
        and (name := partition_name(entry.name)) is not None
        and name.mark == "delete"
    ]
    return find_partitions(paths, strict=False)
