"""Commits of consumer groups that count at a time, and which of them are stale, from view
`offset_commits`. Rules: docs/format.md F300 to F303, F324 to F327.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructType

from kafkalog.analysis.lag.groups import GROUP_KEY, joined_by_group
from kafkalog.coordination.groups.commit_status import (
    GroupFacts,
    KnownTopic,
    commit_status,
    expires_ms,
    subscribed_by_all,
)
from kafkalog.inspection.groups.commits_in_effect import (
    COMMIT_COLUMNS,
    HAS_OPEN_COMMIT,
    RANK,
    WAITS,
    CommitsInEffect,
    commits_that_count,
)

_Batches = Iterator[pa.RecordBatch]
# What a commit's status depends on besides columns of the group and of the topic.
_OF_COMMIT = (
    *("cluster_id", "internal_partition", "topic", "topic_id", "committed_offset"),
    *("commit_timestamp_ms", "expire_timestamp_ms", "is_confirmed", HAS_OPEN_COMMIT),
)
_GROUP, _TOPICS, _SUBSCRIBED = "group_facts", "known_topics", "subscribed"


def commits_in_effect(offset_commits: DataFrame, at_ms: int | None = None) -> DataFrame:
    """Return for each group, topic and partition the commit that counts, with the columns
    COMMIT_COLUMNS of view `offset_commits`, and has_open_commit: whether another commit waits for
    the end of a transaction.

    With `at_ms` the rows are those of that time: a commit in a transaction counts from the
    marker's time on, and a record without a timestamp from the commit's own time on. Deleted
    commits are left out; a commit that only waits has its key and input_path alone. A
    committed_offset below 0 is null.
    """
    commits = offset_commits.select(*COMMIT_COLUMNS)
    found = StructType([*commits.schema.fields]).add(HAS_OPEN_COMMIT, BooleanType())
    kept = StructType([*commits.schema.fields]).add(RANK, LongType()).add(WAITS, BooleanType())
    last = commits.mapInArrow(_last_commits(at_ms), kept)
    return last.groupBy("cluster_id", "internal_partition").applyInArrow(commits_that_count, found)


def _last_commits(at_ms: int | None) -> Callable[[_Batches], _Batches]:
    def last(batches: _Batches) -> _Batches:
        commits = CommitsInEffect(at_ms)
        for batch in batches:
            commits.add(batch)
        rows = commits.rows()
        if rows is not None:
            yield from rows.to_batches()

    return last


def with_commit_status(
    commits: DataFrame,
    groups: DataFrame,
    members: DataFrame,
    topics: DataFrame,
    *,
    at_ms: int,
    retention_ms: int,
) -> DataFrame:
    """Return the commits with expires_ms, when the broker drops the commit, null for never, and
    commit_status, the first of these that holds.

    - no_commit: it has no committed offset
    - other_partition: the group belongs to another partition of the offsets topic
    - unknown_topic: the input has no such topic
    - deleted_topic: the input shows that the topic was deleted
    - recreated_topic: the commit is for a topic of another id, or in ZooKeeper older than the topic
    - beyond_log_end: it is above the column high_watermark
    - expired: expires_ms has come at `at_ms`
    - unconfirmed: is_confirmed is false
    - current

    `commits` are rows of commits_in_effect with a column high_watermark. `groups`, with
    offsets_partition, and `members` are those of the same time. `topics` has cluster_id, topic,
    topic_id, is_deleted, and created_ms by ZooKeeper's clock where it is known.
    """
    known = _with_topics(_with_groups(commits, groups, members), topics)
    schema = StructType([*commits.schema.fields])
    schema = schema.add("expires_ms", LongType()).add("commit_status", StringType())
    return known.mapInArrow(_judging(at_ms, retention_ms), schema)


def _with_groups(commits: DataFrame, groups: DataFrame, members: DataFrame) -> DataFrame:
    # Members mostly subscribe to the same topics. In a struct, for a set leaves null out.
    subscriptions = members.groupBy(*GROUP_KEY).agg(
        F.collect_set(F.struct("subscribed_topics")).alias(_SUBSCRIBED)
    )
    facts = joined_by_group(groups, subscriptions).select(
        *GROUP_KEY,
        F.struct(
            *("group_type", "state", "protocol_type", "state_timestamp_ms"),
            *("offsets_partition", _SUBSCRIBED),
        ).alias(_GROUP),
    )
    # Of its topic alone: a group can have thousands of topics, and as many commits.
    own = F.transform(
        F.col(_GROUP)[_SUBSCRIBED],
        lambda each: F.struct(
            F.filter(each["subscribed_topics"], lambda topic: topic == F.col("topic")).alias(
                "subscribed_topics"
            )
        ),
    )
    known = joined_by_group(commits, facts)
    return known.select(*commits.columns, F.col(_GROUP).withField(_SUBSCRIBED, own).alias(_GROUP))


def _with_topics(commits: DataFrame, topics: DataFrame) -> DataFrame:
    same = (F.col("topic") == F.col("of_topic")) & F.col("cluster_id").eqNullSafe(
        F.col("of_cluster_id")
    )
    by_name = topics.groupBy(
        F.col("cluster_id").alias("of_cluster_id"), F.col("topic").alias("of_topic")
    ).agg(F.collect_set(F.struct(*KnownTopic._fields)).alias(_TOPICS))
    return commits.join(F.broadcast(by_name), same, "left").select(*commits.columns, _TOPICS)


def _judging(at_ms: int, retention_ms: int) -> Callable[[_Batches], _Batches]:
    def judge(batches: _Batches) -> _Batches:
        for batch in batches:
            expiry: list[int | None] = []
            statuses: list[str] = []
            for row in batch.select([*_OF_COMMIT, "high_watermark", _GROUP, _TOPICS]).to_pylist():
                group = _facts(row[_GROUP])
                topics = [KnownTopic(**topic) for topic in row[_TOPICS] or ()]
                expiry.append(expires_ms(row, group, retention_ms))
                statuses.append(
                    commit_status(
                        *(row, group, topics, row["high_watermark"]),
                        at_ms=at_ms,
                        retention_ms=retention_ms,
                    )
                )
            yield (
                batch.drop_columns([_GROUP, _TOPICS])
                .append_column("expires_ms", pa.array(expiry, pa.int64()))
                .append_column("commit_status", pa.array(statuses, pa.string()))
            )

    return judge


def _facts(group: Mapping[str, Any] | None) -> GroupFacts | None:
    if group is None:
        return None
    subscriptions = (member["subscribed_topics"] for member in group[_SUBSCRIBED] or ())
    facts = {name: value for name, value in group.items() if name != _SUBSCRIBED}
    return GroupFacts(**facts, topics=subscribed_by_all(subscriptions))
