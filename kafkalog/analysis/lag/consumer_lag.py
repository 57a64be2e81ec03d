"""Consumer lag of all groups, a row per group, topic and partition, from commits with accounts of
their lag. Rules: docs/format.md F310 to F327.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.cluster_metadata import metadata_in_force, metadata_topics, partition_leaders
from kafkalog.analysis.lag.commits import commits_in_effect, with_commit_status
from kafkalog.analysis.lag.groups import (
    GROUP_KEY,
    group_members,
    groups,
    joined_by_group,
    latest_group_records,
    member_partitions,
    offset_storage,
)
from kafkalog.analysis.lag.offsets_partitions import with_offsets_partition
from kafkalog.analysis.sentences import age_column
from kafkalog.coordination.groups.commit_status import COUNTED, NO_COMMIT
from kafkalog.schemas import table_fields

_PARTITION = ("topic", "partition")
_MEMBER = ("member_id", "instance_id", "client_id", "client_host")
# Parts of a lag that are lost, or cannot be read here.
_LOST = ("below_log_start", "damaged")
# What a lag can be made of, in words.
_PARTS = (
    ("readable_records", "to read"),
    ("control_records", "control"),
    ("aborted_records", "aborted"),
    ("gaps", "gaps"),
    ("beyond_last_stable", "in open transactions"),
    ("below_log_start", "deleted"),
    ("in_tiered_storage", "in tiered storage"),
    ("damaged", "damaged"),
    ("ahead_of_log", "ahead of the log"),
)
_IS_OFFSETS_TOPIC = "topic = '__consumer_offsets'"


@dataclass(frozen=True)
class ZookeeperSources:
    """One cluster's tables of analysis.zookeeper.zookeeper_groups: groups, the partitions that
    consumers own, topics and leaders."""

    groups: DataFrame
    owned: DataFrame
    topics: DataFrame
    leaders: DataFrame


@dataclass(frozen=True)
class LagSources:
    """The sources of lag: views `offset_commits` and `group_metadata`, view `messages` of
    `__cluster_metadata` or None, `topics` with cluster_id, topic, topic_id and is_deleted, and from
    when on the commits of each internal_partition are complete, complete_from_ms. Commits in
    ZooKeeper are among them, with their groups in `zookeeper`."""

    commits: DataFrame
    group_metadata: DataFrame
    metadata: DataFrame | None
    topics: DataFrame
    complete_from: DataFrame
    zookeeper: ZookeeperSources | None = None


def lag_of_groups(
    sources: LagSources,
    count: Callable[[DataFrame], DataFrame],
    *,
    as_of: int | None,
    at_ms: int,
    retention_ms: int,
) -> DataFrame:
    """Return the rows of table `consumer_lag`, now or `as_of` a past time, with ages as of `at_ms`.
    `count` adds accounts of lag to rows with topic, partition, committed_offset and at_ms, as
    kafkalog.spark.jobs.lag.lag_reading.with_lag does.

    Keeps what is used several times in memory.
    """
    commits = commits_in_effect(sources.commits, as_of).persist()
    latest = latest_group_records(sources.group_metadata, as_of)
    members = group_members(latest.persist()).persist()
    topics, leaders = _topics_and_leaders(sources, as_of)
    partitions = sources.complete_from.selectExpr("cluster_id", "internal_partition AS partition")
    if leaders is not None:
        led = leaders.where(_IS_OFFSETS_TOPIC).select("cluster_id", "partition")
        partitions = partitions.union(led)
    in_kafka = groups(latest, commits.where("internal_partition IS NOT NULL"))
    known = with_offsets_partition(in_kafka, partitions)
    assignments = member_partitions(members, topics)
    places = latest.select(*GROUP_KEY, "input_path")
    if sources.zookeeper is not None:
        found, owned = sources.zookeeper.groups, sources.zookeeper.owned
        known = known.unionByName(found.drop("input_path"), allowMissingColumns=True)
        assignments = assignments.unionByName(owned, allowMissingColumns=True)
        places = places.unionByName(found.select(*GROUP_KEY, "input_path"))
    known = known.persist()
    rows = with_input_path(commits_and_assignments(commits, assignments), places)
    counted = count(rows.withColumn("at_ms", F.lit(at_ms).cast("long")))
    judged = with_commit_status(
        counted, known, members, topics, at_ms=at_ms, retention_ms=retention_ms
    )
    complete = sources.complete_from.groupBy(
        F.col("internal_partition").alias("complete_partition")
    ).agg(F.max("complete_from_ms").alias("commits_complete_from_ms"))
    same = F.col("internal_partition").eqNullSafe(F.col("complete_partition"))
    with_reach = judged.join(F.broadcast(complete), same, "left")
    return consumer_lag(with_reach, known, leaders)


def _topics_and_leaders(
    sources: LagSources, as_of: int | None
) -> tuple[DataFrame, DataFrame | None]:
    """Return the topics from all sources, and the leaders of partitions if any source has them."""
    topics, leaders = sources.topics, None
    if sources.metadata is not None:
        in_force = metadata_in_force(sources.metadata, as_of).persist()
        topics = topics.unionByName(metadata_topics(in_force), allowMissingColumns=True)
        leaders = partition_leaders(in_force)
    if sources.zookeeper is not None:
        topics = topics.unionByName(sources.zookeeper.topics)
        led = sources.zookeeper.leaders
        leaders = led if leaders is None else leaders.unionByName(led, allowMissingColumns=True)
    return topics, leaders


def commits_and_assignments(commits: DataFrame, assignments: DataFrame) -> DataFrame:
    """Return a row for each commit, with the member that has its partition, and for each assigned
    partition without a commit.

    `commits` are rows of commits_in_effect, `assignments` rows of member_partitions. If several
    members claim a partition, because one of them has died, the last by id is named.
    """
    members = (
        assignments.where("topic IS NOT NULL")
        .groupBy(*GROUP_KEY, *_PARTITION)
        .agg(F.max(F.struct(*_MEMBER)).alias("member"))
    )
    names = (*GROUP_KEY, *_PARTITION)
    rest = [name for name in commits.columns if name not in names]
    return joined_by_group(commits, members, "full", key=names).select(
        *(F.coalesce(name, f"of_{name}").alias(name) for name in names), *rest, "member.*"
    )


def with_input_path(rows: DataFrame, places: DataFrame) -> DataFrame:
    """Return rows of commits_and_assignments with the input_path of the group where nothing is
    committed: a job that runs again replaces rows by their input. `places` has the input_path of
    groups, perhaps several for one."""
    one = places.groupBy(*GROUP_KEY).agg(F.max("input_path").alias("group_path"))
    found = joined_by_group(rows, one)
    path = F.coalesce("input_path", "group_path")
    return found.withColumn("input_path", path).select(*rows.columns)


def consumer_lag(counted: DataFrame, known: DataFrame, leaders: DataFrame | None) -> DataFrame:
    """Return the rows of table `consumer_lag`: schemas/tables/consumer_lag.json.

    `counted` are rows of commits_and_assignments with at_ms, accounts and statuses; `known` are
    rows of analysis.lag.groups; `leaders` are rows of partition_leaders, None if no source has
    them.
    """
    described = known.select(
        *GROUP_KEY,
        "group_type",
        F.col("state").alias("group_state"),
        F.col("epoch").alias("group_epoch"),
        "assignor",
        F.col("members").alias("member_count"),
    )
    rows = joined_by_group(counted, described)
    found = _with_coordinators(rows, leaders).withColumns(
        {"offset_storage": offset_storage(), **lag_times(F.col("at_ms"))}
    )
    return found.select(*(field["name"] for field in table_fields("consumer_lag")))


def _with_coordinators(rows: DataFrame, leaders: DataFrame | None) -> DataFrame:
    if leaders is None:
        return rows.withColumn("coordinator_broker_id", F.lit(None).cast("int"))
    of_groups = leaders.where(_IS_OFFSETS_TOPIC).select(
        F.col("cluster_id").alias("leader_cluster_id"),
        F.col("partition").alias("leader_partition"),
        F.col("leader").alias("coordinator_broker_id"),
    )
    same = (F.col("internal_partition") == F.col("leader_partition")) & F.col(
        "cluster_id"
    ).eqNullSafe(F.col("leader_cluster_id"))
    return rows.join(F.broadcast(of_groups), same, "left")


def lag_times(at_ms: Column) -> dict[str, Column]:
    """Return the columns time_lag_ms, at a time, freshness_ms and wait_before_commit_ms. F315"""
    left = F.col("readable_records") + F.col("in_tiered_storage") + F.col("damaged")
    age = F.when(left == 0, F.lit(0)).otherwise(at_ms - F.col("next_timestamp_ms"))
    return {
        "time_lag_ms": age.cast("long"),
        "freshness_ms": F.col("newest_timestamp_ms") - F.col("next_timestamp_ms"),
        "wait_before_commit_ms": F.col("commit_timestamp_ms") - F.col("consumed_timestamp_ms"),
    }


def lag_totals(lag: DataFrame) -> DataFrame:
    """Return one row: groups and partitions; of those whose commit counts, how many lag, the
    records left to read, the most in one partition, and the greatest lag in time; how many commits
    are stale or expired, and for how many the lag is not known; in how many partitions producers'
    clocks or committed offsets decide a log's end at a past time, in how many offsets were deleted
    unread, and in how many damage hides some."""
    counts = F.col("commit_status").isin(*COUNTED)
    is_behind = counts & (F.col("readable_records") > 0)
    return lag.agg(
        # Not of the columns: where one is null they would not count.
        F.countDistinct(F.struct("cluster_id", "group_id")).alias("groups"),
        F.count("*").alias("partitions"),
        F.count_if(is_behind).alias("behind"),
        F.coalesce(F.sum(F.when(counts, F.col("readable_records"))), F.lit(0)).alias("records"),
        F.max(F.when(is_behind, F.col("readable_records"))).alias("most_records"),
        F.max(F.when(is_behind, F.col("time_lag_ms"))).alias("time_lag_ms"),
        F.count_if(~counts & (F.col("commit_status") != NO_COMMIT)).alias("stale"),
        F.count_if(F.col("commit_status") == "expired").alias("expired"),
        F.count_if(F.col("committed_offset").isNotNull() & F.col("lag").isNull()).alias("unknown"),
        F.count_if(F.col("high_watermark_from").isin("create_time", "consumed")).alias("by_clocks"),
        *(F.count_if(counts & (F.col(name) > 0)).alias(name) for name in _LOST),
    )


def most_behind(lag: DataFrame) -> DataFrame:
    """Return the rows with most to read first, in the columns for a terminal."""
    words = [F.when(F.col(name) > 0, F.format_string(f"%,d {text}", name)) for name, text in _PARTS]
    return lag.orderBy(
        F.col("readable_records").desc_nulls_last(), "group_id", "topic", "partition"
    ).select(
        *("group_id", "topic", "partition", "committed_offset", "high_watermark", "lag"),
        F.concat_ws(", ", *words).alias("made_of"),
        age_column(F.col("time_lag_ms")).alias("time_lag"),
        F.col("commit_status").alias("status"),
        "group_state",
        F.col("offset_storage").alias("stored_in"),
        # Consumers that ZooKeeper coordinates have no other name.
        F.coalesce("client_id", "member_id").alias("client"),
        "client_host",
    )
