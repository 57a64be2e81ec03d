"""What is read of ZooKeeper's data directories and of log directories to compare the offsets in
both."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.coordination.groups.offsets_partitions import offsets_partition_of
from kafkalog.coordination.groups.offsets_replicas import OffsetsReplicas
from kafkalog.coordination.zookeeper.ensemble_clusters import EnsembleCluster
from kafkalog.coordination.zookeeper.kafka_directories import (
    BROKER_REGISTRY,
    CONSUMER_OFFSETS_VIEW,
    CONSUMER_REGISTRY,
    TOPIC_REGISTRY,
)
from kafkalog.errors import OptionError
from kafkalog.inspection.logs.log_offsets import earliest_offset, log_end_offset
from kafkalog.inspection.logs.missing_records import note_missing_records
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperInput, ZookeeperLag, zookeeper_input
from kafkalog.spark.jobs.planned_views import PlannedViews
from kafkalog.spark.jobs.zookeeper.migration_request import MigrationRequest
from kafkalog.spark.log_rows import rows_of_logs
from kafkalog.storage.files.output_files import refuse_existing_directory, refuse_unwritable_file
from kafkalog.storage.log_dir.log_dir import input_entries
from kafkalog.storage.log_dir.read_directories import directories_read, refuse_inside, refuse_tables
from kafkalog.storage.names import CONSUMER_OFFSETS, INTERNAL_TOPICS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.oldest_log import is_oldest_layout

_GROUPS_LOOKED_AT = 1000
_ENDS = "topic string, partition int, log_start_offset bigint, log_end_offset bigint"


@dataclass(frozen=True, slots=True)
class OffsetStores:
    """What both stores of one cluster say: of ZooKeeper views `consumer_offsets`,
    `consumer_registry`, `topic_registry` and the paths of all `znodes`; of Kafka views
    `offset_commits` and `group_metadata`, empty where groups have never committed to Kafka, and
    `log_ends`. `inputs` are all data directories given, `logs` all logs of the log directories,
    `partitions` is the number of partitions of `__consumer_offsets`, if it is known, `replicas` are
    those that there should be of each and those that there are."""

    cluster: EnsembleCluster
    inputs: Sequence[str]
    logs: list[PartitionLog]
    partitions: int | None
    replicas: OffsetsReplicas
    zookeeper_offsets: DataFrame
    consumers: DataFrame
    topics: DataFrame
    znodes: DataFrame
    commits: DataFrame
    group_metadata: DataFrame
    log_ends: DataFrame


class OffsetInputs(NamedTuple):
    """What is read: the logs of the log directories, and ZooKeeper's files."""

    logs: list[PartitionLog]
    zookeeper: ZookeeperInput


def offset_inputs(
    job: JobSettings, request: MigrationRequest, logs: list[PartitionLog]
) -> OffsetInputs:
    """Return the inputs, found before a session is started.

    Raises LogDirError for a data directory without files of ZooKeeper's, and OptionError for places
    to write to that lie in what is read or cannot be written to.
    """
    given = zookeeper_input(request.zookeeper, job.mode, request.chroot)
    entries = [entry for path in job.paths for entry in input_entries(path)]
    directories = [*given.paths, *directories_read(entries, logs)]
    refuse_tables(job.output_dir, directories)
    if request.write_segments is not None:
        refuse_inside("--write-segments", request.write_segments, directories)
        refuse_existing_directory("--write-segments", request.write_segments)
    commands = request.write_zookeeper_commands
    if commands is not None:
        refuse_inside("--write-zookeeper-commands", commands, directories)
        refuse_unwritable_file("--write-zookeeper-commands", commands)
        if os.path.lexists(commands):
            raise existing_commands(commands)
    return OffsetInputs(logs, given)


def existing_commands(path: str) -> OptionError:
    """Return the error for a file of commands that exists."""
    return OptionError("--write-zookeeper-commands", path, "a file that is not there yet")


def offset_stores(
    spark: SparkSession, job: JobSettings, request: MigrationRequest, inputs: OffsetInputs
) -> OffsetStores:
    """Return both stores; records of commits that the logs lack are noted for the end of the run.
    Raises OptionError where they cannot be those of one cluster."""
    logs, given = inputs
    note_missing_records(logs, CONSUMER_OFFSETS)
    zookeeper = ZookeeperLag(
        spark,
        given,
        {log.log_dir.cluster_id for log in logs},
        allow_unknown=request.allow_unknown_cluster,
    )
    topics = zookeeper.view(TOPIC_REGISTRY).persist()
    options = {"mode": job.mode, "latest": "true", "subscribe": CONSUMER_OFFSETS}
    views = PlannedViews(spark, job.paths, logs, options)
    commits = views.view("offset_commits")
    return OffsetStores(
        zookeeper.cluster._replace(cluster_id=zookeeper.cluster_id),
        given.inputs,
        logs,
        offsets_topic_partitions(request.offsets_partitions, topics, logs, commits),
        offsets_replicas(topics, logs, _unnamed_broker(request.broker_id, zookeeper, topics, logs)),
        zookeeper.view(CONSUMER_OFFSETS_VIEW),
        zookeeper.view(CONSUMER_REGISTRY),
        topics,
        zookeeper.paths(),
        commits,
        group_metadata=views.view("group_metadata"),
        log_ends=log_ends(spark, logs),
    )


def offsets_topic_partitions(
    given: int | None, topics: DataFrame, logs: Sequence[PartitionLog], commits: DataFrame
) -> int | None:
    """Return the number of partitions of `__consumer_offsets`: as given, or from its znode, or from
    the log directories if groups lie where this number puts them; None if unknown. Rule:
    docs/migration.md F484.

    Raises OptionError for fewer than the log directories have.
    """
    found = {log.partition or 0 for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live}
    least = 1 + max(found, default=-1)
    ((last,),) = topics.where(F.col("topic") == CONSUMER_OFFSETS).agg(F.max("partition")).collect()
    number = given or (None if last is None else int(last) + 1)
    if number is None:
        return least if found and len(found) == least and _fits(commits, least) else None
    if number < least:
        name = "--offsets-partitions"
        raise OptionError(name, number, f"{least} at least, which the log directories have")
    return number


def _unnamed_broker(
    given: int | None, zookeeper: ZookeeperLag, topics: DataFrame, logs: Sequence[PartitionLog]
) -> int | None:
    """Return the broker of log directories that name none: as given, or the only one that views
    `broker_registry` and `topic_registry` name; None if unknown. Rule: docs/migration.md F486."""
    if given is not None or all(log.log_dir.broker_id is not None for log in logs):
        return given
    live = zookeeper.view(BROKER_REGISTRY).select("broker_id")
    assigned = topics.select(F.explode("replicas").alias("broker_id"))
    named = live.union(assigned).where("broker_id IS NOT NULL").distinct().limit(2).collect()
    return named[0].broker_id if len(named) == 1 else None


def offsets_replicas(
    topics: DataFrame, logs: Sequence[PartitionLog], unnamed_broker: int | None
) -> OffsetsReplicas:
    """Return the brokers that have `__consumer_offsets` by view `topic_registry`, and by the logs;
    those of directories that name no broker belong to `unnamed_broker`. Rule: docs/migration.md
    F486."""
    own = topics.where(F.col("topic") == CONSUMER_OFFSETS).select("partition", "replicas")
    rows = own.collect()
    live = [log for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live]
    given: dict[int, set[int]] = {}
    for log in live:
        named = log.log_dir.broker_id
        broker_id = unnamed_broker if named is None else named
        if log.partition is not None and broker_id is not None:
            given.setdefault(log.partition, set()).add(broker_id)
    return OffsetsReplicas(
        bool(rows or live),
        {row.partition: frozenset(row.replicas or ()) for row in rows if row.partition is not None},
        {partition: frozenset(brokers) for partition, brokers in given.items()},
    )


def _fits(commits: DataFrame, number: int) -> bool:
    """Return whether most of some groups lie in the partition that this number puts them into."""
    groups = commits.where("group_id IS NOT NULL").select("group_id", "internal_partition")
    some = groups.distinct().limit(_GROUPS_LOOKED_AT).collect()
    fitting = [row for row in some if offsets_partition_of(row.group_id, number) == row[1]]
    return 2 * len(fitting) > len(some)


def log_ends(spark: SparkSession, logs: Sequence[PartitionLog]) -> DataFrame:
    """Return a row per log: topic, partition, log_start_offset, log_end_offset."""

    def ends(log: PartitionLog) -> tuple[object, ...]:
        end = log_end_offset(log, check_crcs=False)
        return log.topic, log.partition, earliest_offset(log), end

    found = [
        log
        for log in logs
        if log.is_live and log.topic not in INTERNAL_TOPICS and not is_oldest_layout(log)
    ]
    return rows_of_logs(spark, found, _ENDS, ends)
