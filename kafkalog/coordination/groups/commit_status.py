"""Which commits are stale, and when brokers drop them. Rules: docs/format.md F325 to F327."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from kafkalog.wire.java_text import java_string_hash

# Statuses of commits whose lag counts. A running broker's disk has hardly any expired commit: those
# are in copies, and counted when the copy was made.
COUNTED = ("current", "unconfirmed", "expired")
BEYOND_LOG_END = "beyond_log_end"
NO_COMMIT = "no_commit"
# Kafka's default of `offsets.retention.minutes`: a week.
OFFSETS_RETENTION_MINUTES = 7 * 24 * 60


class KnownTopic(NamedTuple):
    """A topic that a directory, the metadata or ZooKeeper names. The id is None if it is not known,
    `created_ms` is a time by ZooKeeper's clock."""

    cluster_id: str | None
    topic: str
    topic_id: str | None
    is_deleted: bool
    created_ms: int | None = None


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """All known topics by cluster and name, and the clusters whose number of partitions of
    `__consumer_offsets` `is_confirmed`."""

    by_name: Mapping[tuple[str | None, str], Sequence[KnownTopic]]
    confirmed: Collection[str | None] = ()


class RetentionStart(Enum):
    """From when on the retention of a commit counts: its own time, or when its group got into its
    state."""

    COMMIT = "commit_timestamp_ms"
    STATE = "state_timestamp_ms"


class GroupFacts(NamedTuple):
    """What the status of a group's commits depends on. `topics` are those that its members
    subscribe to, None if those of a member are not known; `offsets_partition` is the partition of
    `__consumer_offsets` that the group belongs to, None if it is not known."""

    group_type: str | None
    state: str | None
    protocol_type: str | None
    state_timestamp_ms: int | None
    topics: frozenset[str] | None = None
    offsets_partition: int | None = None


def subscribed_by_all(subscriptions: Iterable[Collection[str] | None]) -> frozenset[str] | None:
    """Return the topics that a group's members subscribe to, None if those of a member are not
    known, or without members."""
    topics: set[str] = set()
    has_members = False
    for subscription in subscriptions:
        if subscription is None:
            return None
        topics.update(subscription)
        has_members = True
    return frozenset(topics) if has_members else None


def expires_ms(
    commit: Mapping[str, Any], group: GroupFacts | None, retention_ms: int
) -> int | None:
    """Return when the broker drops a commit, as far as is known now; None for never.

    `commit` is a row of view `offset_commits` that is in effect, with has_open_commit.
    """
    start = None if group is None else retention_start(commit, group)
    times = {
        RetentionStart.COMMIT: commit["commit_timestamp_ms"],
        RetentionStart.STATE: None if group is None else group.state_timestamp_ms,
    }
    base_ms: int | None = None if start is None else times[start]
    if base_ms is None:
        return None
    own_ms: int | None = commit["expire_timestamp_ms"]
    return base_ms + retention_ms if own_ms is None else own_ms


def retention_start(commit: Mapping[str, Any], group: GroupFacts) -> RetentionStart | None:
    """Return from when on the retention of a commit counts, None if it does not. F325

    Of the commit that depends on its topic and on has_open_commit, of the group's times only on
    whether that of its state is known."""
    if commit["has_open_commit"]:
        return None
    if group.state is None or group.group_type in ("share", "zookeeper"):
        return None
    is_empty = group.state == "Empty"
    is_unread = group.topics is not None and commit["topic"] not in group.topics
    if group.group_type == "streams":
        return RetentionStart.COMMIT if is_empty else None
    if group.group_type == "consumer":
        return RetentionStart.COMMIT if is_empty or is_unread else None
    if group.protocol_type is None:
        return RetentionStart.COMMIT
    if is_empty:
        has_time = group.state_timestamp_ms is not None
        return RetentionStart.STATE if has_time else RetentionStart.COMMIT
    is_left = group.protocol_type == "consumer" and is_unread
    return RetentionStart.COMMIT if is_left else None


def commit_status(
    commit: Mapping[str, Any],
    group: GroupFacts | None,
    topics: Sequence[KnownTopic],
    high_watermark: int | None,
    *,
    at_ms: int,
    retention_ms: int,
) -> str:
    """Return the first status in docs/lag.md that a commit has at a time.

    `commit` is a row of view `offset_commits` that is in effect, with has_open_commit; `topics`
    are all known topics of its cluster and of its topic's name.
    """
    if commit["committed_offset"] is None:
        return NO_COMMIT
    place = None if group is None else group.offsets_partition
    if place is not None and place != commit["internal_partition"]:
        return "other_partition"
    if not topics:
        return "unknown_topic"
    if all(topic.is_deleted for topic in topics):
        return "deleted_topic"
    if _is_of_earlier_topic(commit, topics):
        return "recreated_topic"
    if high_watermark is not None and commit["committed_offset"] > high_watermark:
        return BEYOND_LOG_END
    expiry_ms = expires_ms(commit, group, retention_ms)
    if expiry_ms is not None and expiry_ms <= at_ms:
        return "expired"
    return "unconfirmed" if commit["is_confirmed"] is False else "current"


def _is_of_earlier_topic(commit: Mapping[str, Any], topics: Sequence[KnownTopic]) -> bool:
    """Return whether the commit names another topic id, or is in ZooKeeper and older than the
    topic."""
    ids = {topic.topic_id for topic in topics if not topic.is_deleted} - {None}
    if ids and commit["topic_id"] is not None and commit["topic_id"] not in ids:
        return True
    committed_ms: int | None = commit["commit_timestamp_ms"]
    if commit["internal_partition"] is not None or committed_ms is None:
        return False
    return any(topic.created_ms is not None and committed_ms < topic.created_ms for topic in topics)


_LEAST_HASH = -(1 << 31)


def offsets_partition_of(group_id: str, partitions: int) -> int:
    """Return the partition that a group belongs to, given the number of partitions."""
    code = java_string_hash(group_id)
    # The least number has no absolute value in Java; brokers take 0.
    return 0 if code == _LEAST_HASH else abs(code) % partitions


def partition_count(numbers: Collection[int]) -> int | None:
    """Return how many partitions `__consumer_offsets` has by those that are found, None if one is
    missing below the highest, or without any."""
    count = max(numbers, default=-1) + 1
    return count if count and count == len(set(numbers)) else None


def is_confirmed(groups_in_place: int, groups: int) -> bool:
    """Return whether most groups are in the partition that the number of partitions puts them in:
    an input that has only the first partitions of the topic puts them anywhere."""
    return groups_in_place * 2 > groups
