"""Both stores of groups' offsets side by side, and what is to be said of each group.

Rules: docs/migration.md F470 to F476, F479 and F484.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.lag.commits import commits_in_effect
from kafkalog.analysis.lag.groups import group_members, latest_group_records
from kafkalog.analysis.lag.offsets_partitions import offsets_partition
from kafkalog.coordination.zookeeper.offset_migration import REFUSALS, Move, StoreComparison
from kafkalog.schemas import table_fields

_KEY = ("group_id", "topic", "partition")
_GROUP = ("cluster_id", "input_path", "chroot", "group_id")
_VERDICT = ("phase", "reason", "next_step", "objections", "zookeeper_members", "kafka_members")
_REFUSED = sorted(move.value for move in REFUSALS)
# Kafka 0.7 kept a partition on one broker, and offsets were places in its log.
_OF_OLDEST = "an offset of Kafka 0.7: a place in the log of one broker"


@dataclass(frozen=True)
class StoredOffsets:
    """What is compared, of one cluster: of ZooKeeper views `consumer_offsets`, with znode_version,
    `consumer_registry` and `topic_registry`; of Kafka views `offset_commits` and `group_metadata`,
    and where logs start and end."""

    zookeeper_offsets: DataFrame
    consumers: DataFrame
    topics: DataFrame
    commits: DataFrame
    group_metadata: DataFrame
    log_ends: DataFrame


def compared_offsets(stored: StoredOffsets, offsets_partitions: int | None) -> DataFrame:
    """Return what both stores have, with members and log ends: a row per group, topic and
    partition, to be judged."""
    commits = commits_in_effect(stored.commits)
    pairs = offset_pairs(stored.zookeeper_offsets, commits, offsets_partitions)
    registered = stored.consumers.select("group_id", "consumer_id").distinct()
    joined = group_members(latest_group_records(stored.group_metadata))
    return with_log_ends(with_members(pairs, registered, joined), stored.log_ends, stored.topics)


def offset_pairs(
    zookeeper_offsets: DataFrame, commits: DataFrame, offsets_partitions: int | None
) -> DataFrame:
    """Return a row per group, topic and partition that either store has, with what it has.

    `zookeeper_offsets` are rows of view `consumer_offsets` of one cluster, with znode_version;
    `commits` are what commits_in_effect gives of the same cluster. Where the number of partitions
    of `__consumer_offsets` is known, commits in another than the group's do not count (F484).
    Znodes that Kafka 0.7 left have rows of their own.
    """
    place = F.lit(None).cast("int")
    if offsets_partitions is not None:
        place = offsets_partition(F.col("group_id"), offsets_partitions)
        commits = commits.where(F.col("internal_partition") == place)
    detail = F.when(F.col("broker_id").isNotNull(), _OF_OLDEST).otherwise(F.col("detail"))
    in_zookeeper = zookeeper_offsets.select(
        *(F.col(name).alias(f"zookeeper_{name}") for name in _KEY),
        F.when(detail.isNull(), F.col("committed_offset")).alias("zookeeper_offset"),
        F.col("mtime_ms").alias("zookeeper_mtime_ms"),
        F.col("path").alias("znode"),
        "znode_version",
        detail.alias("detail"),
        F.col("broker_id").isNull().alias("is_of_today"),
    )
    in_kafka = commits.where("committed_offset IS NOT NULL").select(
        *_KEY, F.col("committed_offset").alias("kafka_offset"), "commit_timestamp_ms"
    )
    # Offsets of 0.7 are byte positions: they do not replace Kafka's offset of the partition.
    same = F.col("is_of_today")
    for name in _KEY:
        same = same & F.col(name).eqNullSafe(F.col(f"zookeeper_{name}"))
    joined = in_zookeeper.join(in_kafka, same, "full")
    return joined.select(
        *(F.coalesce(f"zookeeper_{name}", name).alias(name) for name in _KEY),
        *("zookeeper_offset", "zookeeper_mtime_ms", "kafka_offset", "commit_timestamp_ms"),
        *("znode", "znode_version", "detail"),
    ).withColumn("offsets_partition", place)


def with_members(pairs: DataFrame, registered: DataFrame, joined: DataFrame) -> DataFrame:
    """Return the pairs with zookeeper_members and kafka_members, how many consumers their groups
    have: `registered` has a row for each in ZooKeeper, `joined` for each by Kafka's protocol."""
    for members, name in ((registered, "zookeeper_members"), (joined, "kafka_members")):
        counts = members.groupBy("group_id").agg(F.count("*").alias(name))
        pairs = pairs.join(counts, "group_id", "left").fillna(0, [name])
    return pairs


def with_log_ends(pairs: DataFrame, ends: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the pairs with log_start_offset and log_end_offset of their partitions, null where
    `ends` does not have them, and has_topic: whether that or `topics` has the topic."""
    by_log = ends.groupBy("topic", "partition").agg(
        F.min("log_start_offset").alias("log_start_offset"),
        F.max("log_end_offset").alias("log_end_offset"),
    )
    known = ends.select("topic").union(topics.select("topic")).distinct()
    return (
        pairs.join(by_log, ["topic", "partition"], "left")
        .join(known.withColumn("is_known", F.lit(True)), "topic", "left")
        .withColumn("has_topic", F.col("is_known").isNotNull())
        .drop("is_known")
    )


def offset_migration(judged: DataFrame) -> DataFrame:
    """Return the rows of table `offset_migration`: schemas/tables/offset_migration.json."""
    difference = F.col("zookeeper_offset") - F.col("kafka_offset")
    later = F.col("zookeeper_mtime_ms") - F.col("commit_timestamp_ms")
    found = judged.withColumns({"offset_difference": difference, "time_difference_ms": later})
    return found.select(*(field["name"] for field in table_fields("offset_migration")))


def migration_phases(judged: DataFrame) -> DataFrame:
    """Return the rows of table `migration_phases`: schemas/tables/migration_phases.json."""
    counts = {
        "partitions": F.count("*"),
        **{each.value: F.count_if(F.col("comparison") == each.value) for each in StoreComparison},
        "to_move": F.count_if(F.col("to_kafka") == Move.MOVE.value),
        "refused": F.count_if(F.col("to_kafka").isin(_REFUSED)),
        "last_zookeeper_ms": F.max("zookeeper_mtime_ms"),
        "last_kafka_ms": F.max("commit_timestamp_ms"),
    }
    grouped = judged.groupBy(*_GROUP, *_VERDICT).agg(
        *(count.alias(name) for name, count in counts.items())
    )
    is_safe = F.size("objections") == 0
    return grouped.withColumn("is_safe", is_safe).select(
        *(field["name"] for field in table_fields("migration_phases"))
    )


def migration_totals(rows: DataFrame) -> DataFrame:
    """Return one row of counts of table `offset_migration`: groups, partitions, each comparison,
    each outcome of a move as `move_to_kafka` or `rewind_to_zookeeper`, how many would expire in
    Kafka and, as `warned_to_zookeeper`, how many have another warning."""
    outcomes = (
        _count_of(column, each.value).alias(f"{each.value}_{column}")
        for column in ("to_kafka", "to_zookeeper")
        for each in Move
    )
    return rows.agg(
        F.countDistinct("group_id").alias("groups"),
        F.count("*").alias("partitions"),
        *(_count_of("comparison", each.value).alias(each.value) for each in StoreComparison),
        *outcomes,
        F.count_if(F.array_contains("to_kafka_warnings", "expired")).alias("expired"),
        *(
            F.count_if(F.size(F.array_remove(f"{column}_warnings", "expired")) > 0).alias(
                f"warned_{column}"
            )
            for column in ("to_kafka", "to_zookeeper")
        ),
    )


def phase_totals(phases: DataFrame) -> DataFrame:
    """Return a row per phase of table `migration_phases`: groups, and for how many the next step is
    safe."""
    totals = phases.groupBy("phase").agg(
        F.count("*").alias("groups"), F.count_if("is_safe").alias("safe")
    )
    return totals.orderBy("phase")


def _count_of(column: str, value: str) -> Column:
    return F.count_if(F.col(column) == value)
