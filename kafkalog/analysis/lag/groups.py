"""Groups and their members as their coordinators have them, now or at a moment, from view
`group_metadata`. Rules: docs/format.md F320 to F323.

A group is known by cluster_id, internal_partition and group_id, the columns that view
`offset_commits` has as well; null is a cluster like others.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.coordination.groups.group_records import (
    CLASSIC_RECORD,
    CURRENT_ASSIGNMENT_RECORDS,
    DEFAULT_ASSIGNOR,
    GROUP_RECORDS,
    MEMBER_RECORDS,
    REGEX_RECORD,
    TARGET_RECORDS,
    TOPOLOGY_RECORD,
)

GROUP_KEY = ("cluster_id", "internal_partition", "group_id")


def latest_group_records(group_metadata: DataFrame, at_ms: int | None = None) -> DataFrame:
    """Of each key the record that counts, tombstones among them: the rows of view `group_metadata`
    with the highest offset, of those written up to `at_ms`."""
    records = group_metadata.where("group_id IS NOT NULL AND record_type IS NOT NULL")
    if at_ms is not None:
        records = records.where(F.col("record_timestamp_ms") <= at_ms)
    expression = F.when(F.col("record_type") == REGEX_RECORD, F.col("subscribed_topic_regex"))
    keys = (*GROUP_KEY, "group_type", "record_type", "member_id")
    rest = [name for name in records.columns if name not in keys]
    latest = records.groupBy(*keys, expression.alias("expression")).agg(
        F.max_by(F.struct(*rest), "record_offset").alias("latest")
    )
    return latest.select(*keys, "latest.*")


def group_members(latest: DataFrame) -> DataFrame:
    """A row per member: the key of its group, group_type, member_id, instance_id, client_id,
    client_host, rack_id, member_epoch, member_state, server_assignor, subscribed_topics, and
    assigned, topics by name or id with their partitions.

    `latest` is what latest_group_records gives. Members of classic groups are those of the last
    generation. Tasks of streams groups are in view `messages` only: assigned is null.
    """
    return _classic_members(latest).unionByName(_other_members(latest))


def _classic_members(latest: DataFrame) -> DataFrame:
    generations = latest.where((F.col("record_type") == CLASSIC_RECORD) & ~F.col("is_tombstone"))
    members = generations.select(*GROUP_KEY, "group_type", F.explode("members").alias("member"))
    nothing = F.lit(None)
    return members.select(
        *GROUP_KEY,
        "group_type",
        "member.member_id",
        F.col("member.group_instance_id").alias("instance_id"),
        "member.client_id",
        "member.client_host",
        nothing.cast("string").alias("rack_id"),
        nothing.cast("int").alias("member_epoch"),
        nothing.cast("int").alias("member_state"),
        nothing.cast("string").alias("server_assignor"),
        "member.subscribed_topics",
        "member.assigned",
    )


def _other_members(latest: DataFrame) -> DataFrame:
    """Of consumer, share and streams groups, from a record of who a member is and one of what it
    has."""
    who = ("instance_id", "client_id", "client_host", "rack_id", "server_assignor")
    expressions = latest.where(
        (F.col("record_type") == REGEX_RECORD) & ~F.col("is_tombstone")
    ).select(
        *GROUP_KEY,
        F.col("subscribed_topic_regex").alias("expression"),
        F.col("subscribed_topics").alias("matched"),
    )
    is_member = F.col("record_type").isin(*MEMBER_RECORDS)
    has_assignment = F.col("record_type").isin(*CURRENT_ASSIGNMENT_RECORDS)
    described = F.struct(*who, "subscribed_topics", "subscribed_topic_regex")
    members = (
        latest.where((is_member | has_assignment) & ~F.col("is_tombstone"))
        .groupBy(*GROUP_KEY, "group_type", "member_id")
        .agg(
            F.max(F.when(is_member, described)).alias("who"),
            F.max(F.when(has_assignment, F.struct("epoch", "member_state", "assigned"))).alias(
                "has"
            ),
        )
        .where("who IS NOT NULL")
    )
    is_matched = F.col("expression") == F.col("who.subscribed_topic_regex")
    # By name null where the record cannot be read, and in streams groups.
    topics = F.array_distinct(
        F.concat("who.subscribed_topics", F.coalesce("matched", F.array().cast("array<string>")))
    )
    return joined_by_group(members, expressions, "left", is_matched).select(
        *GROUP_KEY,
        "group_type",
        "member_id",
        *(f"who.{name}" for name in who),
        F.col("has.epoch").alias("member_epoch"),
        "has.member_state",
        topics.alias("subscribed_topics"),
        "has.assigned",
    )


def groups(
    latest: DataFrame, commits: DataFrame, default_assignor: str = DEFAULT_ASSIGNOR
) -> DataFrame:
    """A row per group: its key, group_type, state, protocol_type, assignor, epoch, target_epoch,
    state_timestamp_ms, members (how many) and is_simple.

    `latest` is what latest_group_records gives; `commits` are rows of view `offset_commits` that
    are in effect or wait for the end of their transactions: a group that only commits is known by
    nothing else. Groups of which nothing but tombstones is left are Dead. The state is null where
    the group's record cannot be read.
    """
    known = _with_member_counts(_known_groups(latest), group_members(latest))
    found = joined_by_group(known, commits.select(*GROUP_KEY).distinct(), "full")
    has_commits = F.col("of_group_id").isNotNull()
    only_commits = F.col("kind").isNull() & has_commits
    state = F.when(only_commits, "Empty").when(F.col("kind").isNull(), "Dead").otherwise(_state())
    key = [F.coalesce(F.col(name), F.col(f"of_{name}")).alias(name) for name in GROUP_KEY]
    group_type = F.when(only_commits, "classic").otherwise(
        F.coalesce("kind.group_type", "last_group_type")
    )
    # What has committed but never joined has a record with an empty protocol type at times.
    protocol_type = F.nullif("kind.protocol_type", F.lit(""))
    is_classic = F.coalesce(F.col("kind.group_type") == "classic", F.lit(False))
    is_classic = is_classic & F.col("kind.reason").isNull()
    has_no_protocol = is_classic & protocol_type.isNull()
    return found.select(
        *key,
        group_type.alias("group_type"),
        state.alias("state"),
        protocol_type.alias("protocol_type"),
        _assignor(default_assignor).alias("assignor"),
        "kind.epoch",
        "target_epoch",
        "kind.state_timestamp_ms",
        F.coalesce("members", F.lit(0)).cast("int").alias("members"),
        (only_commits | has_no_protocol).alias("is_simple"),
    )


def _known_groups(latest: DataFrame) -> DataFrame:
    """What the records say of groups as wholes; `kind` is null where they are deleted."""
    described = F.struct(
        "record_offset",
        "group_type",
        "epoch",
        "protocol_type",
        "protocol",
        "state_timestamp_ms",
        "reason",
    )

    def live(*types: int) -> Column:
        return F.col("record_type").isin(*types) & ~F.col("is_tombstone")

    return latest.groupBy(*GROUP_KEY).agg(
        F.max(F.when(live(*GROUP_RECORDS), described)).alias("kind"),
        F.max(F.when(live(*TARGET_RECORDS), F.col("epoch"))).alias("target_epoch"),
        F.max(F.when(live(TOPOLOGY_RECORD), F.col("epoch"))).alias("topology_epoch"),
        F.max(F.when(live(*GROUP_RECORDS), F.col("validated_topology_epoch"))).alias(
            "validated_epoch"
        ),
        F.max_by("group_type", "record_offset").alias("last_group_type"),
    )


def _with_member_counts(known: DataFrame, members: DataFrame) -> DataFrame:
    """With how many members there are, how many have not come to which epoch, and the assignor that
    most of them ask for (of several the first by its name: which one a broker takes is open)."""
    stable_code = F.when(F.col("group_type") == "streams", 1).otherwise(0)
    is_stable = F.coalesce(F.col("member_state") == stable_code, F.lit(False))
    epoch = F.when(is_stable, F.col("member_epoch")).otherwise(-1)
    counts = members.groupBy(*GROUP_KEY).agg(
        F.count("*").alias("members"),
        F.collect_set(epoch).alias("epochs"),
        F.mode("server_assignor", deterministic=True).alias("asked_assignor"),
    )
    return joined_by_group(known, counts).drop(*(f"of_{name}" for name in GROUP_KEY))


def _state() -> Column:
    """The state by the rules of the group's type, F321 and F322."""
    is_ready = F.col("topology_epoch") == F.col("validated_epoch")
    in_assignment = F.col("epochs") == F.array(F.col("target_epoch"))
    rebalancing = (
        F.when(
            (F.col("kind.group_type") == "streams") & ~F.coalesce(is_ready, F.lit(False)),
            "NotReady",
        )
        .when(F.col("kind.epoch") > F.coalesce("target_epoch", F.lit(0)), "Assigning")
        .when(in_assignment, "Stable")
        .otherwise("Reconciling")
    )
    return (
        F.when(F.col("kind.reason").isNotNull(), F.lit(None))
        .when(F.col("members").isNull(), "Empty")
        .when(F.col("kind.group_type").isin("classic", "share", "zookeeper"), "Stable")
        .otherwise(rebalancing)
    )


def _assignor(default: str) -> Column:
    is_stable_classic = (F.col("kind.group_type") == "classic") & F.col("members").isNotNull()
    return F.when(is_stable_classic, F.col("kind.protocol")).when(
        F.col("kind.group_type") == "consumer", F.coalesce("asked_assignor", F.lit(default))
    )


def member_partitions(members: DataFrame, topic_ids: DataFrame) -> DataFrame:
    """A row per member and partition that it has: the key of its group, topic, partition, topic_id,
    member_id, instance_id, client_id, client_host.

    `members` is what group_members gives. `topic_ids` has topic and topic_id; a topic that it does
    not name is null, its id remains.
    """
    who = ("member_id", "instance_id", "client_id", "client_host")
    assigned = members.select(*GROUP_KEY, *who, F.explode("assigned").alias("each"))
    rows = assigned.select(
        *GROUP_KEY,
        *who,
        "each.topic",
        "each.topic_id",
        F.explode("each.partitions").alias("partition"),
    )
    names = (
        topic_ids.where("topic_id IS NOT NULL")
        .groupBy(F.col("topic_id").alias("id"))
        .agg(F.max("topic").alias("name"))
    )
    named = rows.join(F.broadcast(names), rows["topic_id"] == names["id"], "left")
    return named.select(
        *GROUP_KEY, F.coalesce("topic", "name").alias("topic"), "partition", "topic_id", *who
    )


def offset_storage() -> Column:
    """Where the group of a row commits: only of ZooKeeper's there is no internal_partition."""
    return F.when(F.col("internal_partition").isNull(), "zookeeper").otherwise("kafka")


def joined_by_group(
    rows: DataFrame,
    others: DataFrame,
    how: str = "left",
    condition: Column | None = None,
    key: Sequence[str] = GROUP_KEY,
) -> DataFrame:
    """Joined with the rows of the same group, or of the same `key`, which of the others is in
    columns `of_...`; null is a cluster like others."""
    others = others.withColumnsRenamed({name: f"of_{name}" for name in key})
    same = F.lit(True) if condition is None else condition
    for name in key:
        same = same & F.col(name).eqNullSafe(F.col(f"of_{name}"))
    return rows.join(others, same, how)
