"""Which commits nobody will go on from, by plain values. Rules: docs/format.md F323, F325 to F327.

`kafkalog.analysis.lag.commits` does the same for DataFrames; a test holds both against each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from kafkalog.coordination.groups.group_records import Group, GroupKey, GroupMember
from kafkalog.coordination.groups.offsets_partitions import offsets_partition_of

# Those whose lag counts: a running broker's disk has next to none that expired, so that these tell
# of a copy, and counted in it.
COUNTED = ("current", "unconfirmed", "expired")
NO_COMMIT = "no_commit"
# Kafka's default of `offsets.retention.minutes`: a week.
OFFSETS_RETENTION_MINUTES = 7 * 24 * 60


class KnownTopic(NamedTuple):
    """A topic that anything tells of; the id is None where nothing tells."""

    cluster_id: str | None
    topic: str
    topic_id: str | None
    is_deleted: bool


class GroupFacts(NamedTuple):
    """What a commit's status goes by: its group, the topics that all members subscribe, None where
    one member's are not known, and the partition that the group belongs to, if that is known."""

    group: Group
    topics: frozenset[str] | None
    offsets_partition: int | None


def offsets_partitions(
    groups: Collection[GroupKey], partitions: Mapping[str | None, Collection[int]]
) -> dict[GroupKey, int]:
    """Which partition of `__consumer_offsets` groups belong to, where that can be told.

    `partitions` are those that anything tells of, by cluster: there are as many as the highest
    says, if none below is missing and most groups lie where that number puts them. F323
    """
    found: dict[GroupKey, int] = {}
    for cluster_id, numbers in partitions.items():
        count = max(numbers, default=-1) + 1
        if not count or count != len(set(numbers)):
            continue
        own = [key for key in groups if key.cluster_id == cluster_id]
        places = {key: offsets_partition_of(key.group_id, count) for key in own}
        if sum(place == key.internal_partition for key, place in places.items()) * 2 > len(own):
            found |= places
    return found


class CommitJudge:
    """Knows all groups and topics, and tells what becomes of their commits."""

    def __init__(
        self,
        groups: Mapping[GroupKey, Group],
        members: Iterable[GroupMember],
        topics: Iterable[KnownTopic],
        belongs_to: Mapping[GroupKey, int],
        retention_ms: int,
    ) -> None:
        """`belongs_to` is what `offsets_partitions` tells of the groups."""
        of_groups: dict[GroupKey, list[GroupMember]] = defaultdict(list)
        for member in members:
            of_groups[member.group].append(member)
        self._facts = {
            key: GroupFacts(
                group,
                _subscribed(of_groups[key]) if key in of_groups else None,
                belongs_to.get(key),
            )
            for key, group in groups.items()
        }
        self._topics: dict[tuple[str | None, str], list[KnownTopic]] = defaultdict(list)
        for topic in topics:
            self._topics[topic.cluster_id, topic.topic].append(topic)
        self._retention_ms = retention_ms

    def expires_ms(self, commit: Mapping[str, Any], key: GroupKey) -> int | None:
        """When the broker drops the commit, by what is known now; None for never."""
        base_ms = _base_ms(commit, self._facts[key]) if key in self._facts else None
        if base_ms is None or commit["has_open_commit"]:
            return None
        own_ms: int | None = commit["expire_timestamp_ms"]
        return base_ms + self._retention_ms if own_ms is None else own_ms

    def status(
        self, commit: Mapping[str, Any], key: GroupKey, high_watermark: int | None, at_ms: int
    ) -> str:
        """The first of the statuses in docs/lag.md that holds for a row of view `offset_commits`
        that is in effect."""
        if commit["committed_offset"] is None:
            return NO_COMMIT
        facts = self._facts.get(key)
        place = None if facts is None else facts.offsets_partition
        if place is not None and place != key.internal_partition:
            return "other_partition"
        known = self._topics.get((key.cluster_id, commit["topic"]), [])
        if not known:
            return "unknown_topic"
        if all(topic.is_deleted for topic in known):
            return "deleted_topic"
        ids = {topic.topic_id for topic in known if not topic.is_deleted} - {None}
        if ids and commit["topic_id"] is not None and commit["topic_id"] not in ids:
            return "recreated_topic"
        if high_watermark is not None and commit["committed_offset"] > high_watermark:
            return "beyond_log_end"
        expires_ms = self.expires_ms(commit, key)
        if expires_ms is not None and expires_ms <= at_ms:
            return "expired"
        return "unconfirmed" if commit["is_confirmed"] is False else "current"


def _subscribed(members: Iterable[GroupMember]) -> frozenset[str] | None:
    topics: set[str] = set()
    for member in members:
        if member.subscribed_topics is None:
            return None
        topics |= member.subscribed_topics
    return frozenset(topics)


def _base_ms(commit: Mapping[str, Any], facts: GroupFacts) -> int | None:
    """From when on the retention of a commit counts, None if it does not: F325."""
    group = facts.group
    if group.state is None or group.group_type == "share":
        return None
    committed_ms: int | None = commit["commit_timestamp_ms"]
    is_empty = group.state == "Empty"
    is_unread = facts.topics is not None and commit["topic"] not in facts.topics
    if group.group_type == "streams":
        return committed_ms if is_empty else None
    if group.group_type == "consumer":
        return committed_ms if is_empty or is_unread else None
    if group.protocol_type is None:
        return committed_ms
    if is_empty:
        return committed_ms if group.state_timestamp_ms is None else group.state_timestamp_ms
    return committed_ms if group.protocol_type == "consumer" and is_unread else None
