"""Which commits of consumer groups count at a moment, and which of them are stale, from view
`offset_commits`. Rules: docs/format.md F300 to F303, F324 to F327.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.lag.groups import GROUP_KEY, joined_by_group

_COMMIT_KEY = (*GROUP_KEY, "topic", "partition")


def commits_in_effect(offset_commits: DataFrame, at_ms: int | None = None) -> DataFrame:
    """Of each group, topic and partition the commit that counts, with all its columns in view
    `offset_commits`, and has_open_commit: whether another waits for the end of a transaction.

    With `at_ms` what counted then: a commit in a transaction from the marker's time on. What a
    record without a timestamp says counts from the commit's own time on. None for a commit that was
    deleted; one that only waits has a row with nothing but its key and input_path. A
    committed_offset below 0 is null.
    """
    moment = F.coalesce("effective_timestamp_ms", "commit_timestamp_ms")
    written = F.coalesce("record_timestamp_ms", "commit_timestamp_ms")
    has_effect = F.col("effect") == "applied"
    waits = F.col("effect") == "open"
    if at_ms is not None:
        waits = (waits | (has_effect & (moment > at_ms))) & (written <= at_ms)
        waits = waits & F.col("is_transactional")
        has_effect = has_effect & (moment <= at_ms)
    rest = [name for name in offset_commits.columns if name not in _COMMIT_KEY]
    latest = (
        offset_commits.where(has_effect | waits)
        .groupBy(*_COMMIT_KEY)
        .agg(
            F.max_by(
                F.when(has_effect, F.struct(*rest)), F.when(has_effect, F.col("effective_offset"))
            ).alias("latest"),
            F.coalesce(F.bool_or(waits), F.lit(False)).alias("has_open_commit"),
            F.max("input_path").alias("found_under"),
        )
    )
    is_there = F.col("latest").isNotNull() & ~F.col("latest.is_tombstone")
    return latest.where(is_there | F.col("has_open_commit")).select(
        *_COMMIT_KEY,
        *(_column_of_latest(name, is_there) for name in rest),
        "has_open_commit",
    )


def _column_of_latest(name: str, is_there: Column) -> Column:
    if name == "committed_offset":
        # A negative one is none to clients.
        is_there = is_there & (F.col("latest.committed_offset") >= 0)
    # By its input a row is replaced when a job runs again, so that all have one.
    known = (
        F.col("found_under") if name == "input_path" else F.when(is_there, F.col(f"latest.{name}"))
    )
    return known.alias(name)


def with_commit_status(
    commits: DataFrame,
    groups: DataFrame,
    members: DataFrame,
    topics: DataFrame,
    *,
    at_ms: int,
    retention_ms: int,
) -> DataFrame:
    """The commits with two more columns. expires_ms: when the broker drops the commit, by what is
    known now, null for never. commit_status: the first of these that holds.

    - other_partition: the group belongs to another partition of the offsets topic
    - unknown_topic: the input has no such topic
    - deleted_topic: what it has says that it was deleted
    - recreated_topic: the commit is for a topic of another id, or in ZooKeeper older than the topic
    - beyond_log_end: it is above the column high_watermark
    - expired: expires_ms has come at `at_ms`
    - unconfirmed: is_confirmed is false
    - current

    `commits` are rows as commits_in_effect gives them, with a column high_watermark. `groups`, with
    offsets_partition, and `members` are what analysis makes of the same moment. `topics` has
    cluster_id, topic, topic_id, is_deleted, and created_ms by ZooKeeper's clock where that is
    known, several rows for a topic of which there are several.
    """
    rows = joined_by_group(commits, _what_expiry_goes_by(groups, members))
    expires = F.when(
        ~F.coalesce("has_open_commit", F.lit(False)) & _base_ms().isNotNull(),
        F.coalesce(F.col("expire_timestamp_ms"), _base_ms() + retention_ms),
    )
    by_topic = topics.groupBy(
        F.col("cluster_id").alias("topic_cluster_id"), F.col("topic").alias("known_topic")
    ).agg(
        F.collect_set(F.when(~F.col("is_deleted"), F.col("topic_id"))).alias("topic_ids"),
        F.bool_or(~F.col("is_deleted")).alias("is_there"),
        F.max("created_ms").alias("created_ms"),
    )
    same_topic = (F.col("topic") == F.col("known_topic")) & F.col("cluster_id").eqNullSafe(
        F.col("topic_cluster_id")
    )
    return (
        rows.withColumn("expires_ms", expires)
        .join(F.broadcast(by_topic), same_topic, "left")
        .select(commits["*"], "expires_ms", _status(at_ms).alias("commit_status"))
    )


def _status(at_ms: int) -> Column:
    is_other = (F.size("topic_ids") > 0) & ~F.array_contains("topic_ids", F.col("topic_id"))
    is_older = F.col("internal_partition").isNull() & (
        F.col("commit_timestamp_ms") < F.col("created_ms")
    )
    return (
        F.when(F.col("offsets_partition") != F.col("internal_partition"), "other_partition")
        .when(F.col("is_there").isNull(), "unknown_topic")
        .when(~F.col("is_there"), "deleted_topic")
        .when(is_other | is_older, "recreated_topic")
        .when(F.col("committed_offset") > F.col("high_watermark"), "beyond_log_end")
        .when(F.col("expires_ms") <= at_ms, "expired")
        .when(~F.col("is_confirmed"), "unconfirmed")
        .otherwise("current")
    )


def _what_expiry_goes_by(groups: DataFrame, members: DataFrame) -> DataFrame:
    """Of each group its type and state, and the topics that its members subscribe: null where one
    member's are not known."""
    subscribed = members.groupBy(*GROUP_KEY).agg(
        F.when(
            F.bool_and(F.col("subscribed_topics").isNotNull()),
            F.flatten(F.collect_set("subscribed_topics")),
        ).alias("group_topics")
    )
    return joined_by_group(groups, subscribed).select(
        *GROUP_KEY,
        F.col("group_type").alias("expiry_type"),
        F.col("protocol_type").alias("expiry_protocol_type"),
        (F.col("state") == "Empty").alias("is_empty"),
        F.col("state_timestamp_ms").alias("empty_since_ms"),
        "group_topics",
        "offsets_partition",
    )


def _base_ms() -> Column:
    """From when on the retention of a commit counts, null if it does not: F325."""
    committed = F.col("commit_timestamp_ms")
    is_read = F.array_contains("group_topics", F.col("topic"))
    classic = (
        F.when(F.col("expiry_protocol_type").isNull(), committed)
        .when(F.col("is_empty"), F.coalesce("empty_since_ms", committed))
        .when((F.col("expiry_protocol_type") == "consumer") & ~is_read, committed)
    )
    by_type = (
        F.when(F.col("expiry_type") == "consumer", F.when(F.col("is_empty") | ~is_read, committed))
        .when(F.col("expiry_type") == "streams", F.when(F.col("is_empty"), committed))
        .when(F.col("expiry_type").isin("share", "zookeeper"), None)
        .otherwise(classic)
    )
    return F.when(F.col("is_empty").isNotNull(), by_type)
