"""The lag of all groups: a task reads partitions of `__consumer_offsets` and passes on a row for
each commit that counts; then a task has the rows about a log.

Reasons: docs/decisions/0034.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kafkalog.coordination.groups.commit_status import KnownTopic
from kafkalog.coordination.groups.offsets_partitions import is_confirmed
from kafkalog.inspection.groups.placed_commits import (
    GROUPS,
    GROUPS_IN_PLACE,
    PLACED_SCHEMA,
    STATUS_SCHEMA,
    placed_commits,
    with_statuses,
)
from kafkalog.inspection.lag.lag_columns import with_accounts
from kafkalog.spark.jobs.lag.cluster_facts import ClusterFacts
from kafkalog.spark.jobs.lag.lag_reading import CountLag, account_fields, by_log
from kafkalog.spark.jobs.lag.lag_settings import ConsumerLagSettings
from kafkalog.spark.lake.task_groups import in_tasks
from kafkalog.spark.session import parallelism
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.read_plan import TaskSize, packed
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.reading.group_reading import GroupsRead, read_groups
from kafkalog.views.reading.work_log import READ, reported_work

_ROWS_PER_BATCH = 65_536


def placed_commits_of(
    spark: SparkSession,
    options: ReadOptions,
    reads: Sequence[GroupsRead],
    facts: ClusterFacts,
    at_ms: int | None,
) -> DataFrame:
    """Return rows of PLACED_SCHEMA, now or at a past time, made by tasks that each read partitions
    of `__consumer_offsets`."""
    names = facts.topic_names()
    places = {read.place: facts.of_partition(*read.place) for read in reads}

    def place(reads: Sequence[GroupsRead]) -> Iterator[pa.RecordBatch]:
        use_file_access(options.file_access)
        with reported_work(READ, {"reads": str(len(reads))}):
            for read in reads:
                commits, records = read_groups(read, options, at_ms)
                rows = placed_commits(commits, records, names, places[read.place])
                yield from rows.to_batches(max_chunksize=_ROWS_PER_BATCH)

    tasks = TaskSize(options.max_partition_bytes, cores=parallelism(spark))
    return in_tasks(spark, packed(reads, tasks), place, from_arrow_schema(PLACED_SCHEMA))


def with_lag_and_status(
    placed: DataFrame,
    in_zookeeper: DataFrame | None,
    places: DataFrame,
    facts: ClusterFacts,
    settings: ConsumerLagSettings,
) -> DataFrame:
    """Return the rows of groups with at_ms, the columns of `places` and of an account, and the
    status of the commit. `placed` are rows of `placed_commits_of`, which is read twice, and
    `in_zookeeper` those of groups that commit to ZooKeeper, or None."""
    counts = placed.where(F.col(GROUPS).isNotNull()).groupBy("cluster_id")
    sums = counts.agg(F.sum(GROUPS_IN_PLACE), F.sum(GROUPS)).collect()
    confirmed = {cluster_id for cluster_id, *numbers in sums if is_confirmed(*numbers)}
    rows = placed.where(F.col("topic").isNotNull())
    if in_zookeeper is not None:
        rows = rows.unionByName(in_zookeeper, allowMissingColumns=True)
    rows = rows.withColumn("at_ms", F.lit(settings.at_ms).cast("long"))
    count = _counting(settings, facts.topics_by_name(), confirmed)
    return by_log(rows, places, count, [*account_fields(), *from_arrow_schema(STATUS_SCHEMA)])


def of_cluster(read: GroupsRead, cluster_id: str | None) -> GroupsRead:
    """Return the read with this cluster's id where it has none: old brokers do not write it into
    their log directories."""
    copies = tuple(
        replace(
            copy,
            segments=tuple(
                replace(segment, cluster_id=segment.cluster_id or cluster_id)
                for segment in copy.segments
            ),
        )
        for copy in read.copies
    )
    return GroupsRead(copies)


def _counting(
    settings: ConsumerLagSettings,
    topics: Mapping[tuple[str | None, str], Sequence[KnownTopic]],
    confirmed: Collection[str | None],
) -> CountLag:
    """Return a function that adds accounts of lag and statuses to the rows about a log. What it
    refers to needs no Spark: workers import little."""
    read_committed, now_ms = settings.read_committed, settings.now_ms
    at = None if settings.as_of_ms is None else "at_ms"
    at_ms, retention_ms = settings.at_ms, settings.retention_ms

    def count(rows: pa.Table, log: PartitionLog | None) -> pa.Table:
        counted = with_accounts(rows, log, read_committed=read_committed, now_ms=now_ms, at=at)
        return with_statuses(counted, topics, confirmed, at_ms=at_ms, retention_ms=retention_ms)

    return count
