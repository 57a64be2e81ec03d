"""Groups that ZooKeeper coordinates, and its topics and leaders, as analysis.groups and
analysis.cluster_metadata do for brokers. Rules: docs/zookeeper.md F493 and F494.

All arguments are views of format `zookeeper`, of one cluster.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

GROUP_TYPE = "zookeeper"
# Of a znode that could not be read these are null.
_IS_OF_PARTITION = "topic IS NOT NULL AND partition IS NOT NULL"


def zookeeper_groups(registry: DataFrame, *others: DataFrame) -> DataFrame:
    """Return a row per group: its key (internal_partition is null), input_path, group_type, state,
    and members, how many are registered.

    `registry` is view `consumer_registry`, `others` are views in which groups without members are.
    """
    key = ("cluster_id", "group_id", "input_path")
    rows = [view.select(*key, F.lit(None).cast("string").alias("member")) for view in others]
    named = registry.select(*key, F.col("consumer_id").alias("member"))
    found = reduce(DataFrame.unionByName, rows, named).where("group_id IS NOT NULL")
    members = F.countDistinct("member").cast("int")
    return (
        found.groupBy(*key)
        .agg(members.alias("members"))
        .select(
            *key,
            F.lit(None).cast("int").alias("internal_partition"),
            F.lit(GROUP_TYPE).alias("group_type"),
            F.when(F.col("members") > 0, "Stable").otherwise("Empty").alias("state"),
            "members",
        )
    )


def owned_partitions(owners: DataFrame) -> DataFrame:
    """Return a row per partition that a consumer owns: the key of its group, topic, partition,
    member_id. From view `partition_owners`."""
    return owners.where(f"{_IS_OF_PARTITION} AND consumer_id IS NOT NULL").select(
        "cluster_id",
        F.lit(None).cast("int").alias("internal_partition"),
        *("group_id", "topic", "partition"),
        F.col("consumer_id").alias("member_id"),
    )


def zookeeper_topics(registry: DataFrame, deleted: DataFrame) -> DataFrame:
    """Return a row per topic: cluster_id, topic, topic_id, is_deleted, and created_ms, by
    ZooKeeper's clock. From views `topic_registry` and `cluster_znodes`, which has the topics that
    are to be deleted."""
    waiting = deleted.where("kind = 'deleted_topic'").select(
        F.col("cluster_id").alias("of_cluster_id"), F.col("topic").alias("deleted_topic")
    )
    same = (F.col("topic") == F.col("deleted_topic")) & F.col("cluster_id").eqNullSafe(
        F.col("of_cluster_id")
    )
    topics = registry.where("topic IS NOT NULL").select(
        "cluster_id", "topic", "topic_id", F.col("ctime_ms").alias("created_ms")
    )
    return (
        topics.distinct()
        .join(waiting.distinct(), same, "left")
        .select(
            *("cluster_id", "topic", "topic_id"),
            F.col("deleted_topic").isNotNull().alias("is_deleted"),
            "created_ms",
        )
    )


def zookeeper_leaders(states: DataFrame) -> DataFrame:
    """Return a row per partition that has a leader: cluster_id, topic, partition, leader. From view
    `partition_states`."""
    led = states.where(f"{_IS_OF_PARTITION} AND leader >= 0")
    return led.select("cluster_id", "topic", "partition", "leader")
