"""Answers about committed offsets: those on disk, and those that members commit, in memory."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalog.coordination.groups.group_records import GroupPartition
from kafkalog.messages.schema import ZERO_UUID, Values
from kafkalog.server.groups.classic_group import ClassicGroup
from kafkalog.server.groups.consumer_group import ConsumerGroup
from kafkalog.server.groups.known_groups import MOST_LIVE_GROUPS, KnownGroups
from kafkalog.server.groups.stored_groups import NO_OFFSET, Commit, StoredGroups
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request

_UNKNOWN_MEMBER = ""
_NO_GENERATION = -1
_GROUPS_IN_REQUEST_SINCE = 8
# As brokers allow by default (offset.metadata.max.bytes).
_LONGEST_METADATA = 4096


class CommittedOffsets:
    """Commits of groups: what is on disk until a member commits."""

    def __init__(self, known: KnownGroups) -> None:
        self._known = known

    async def offset_commit(self, request: Request) -> Values:
        """Answer OffsetCommit: the offsets are kept in memory."""
        values = request.values
        stored = await self._known.stored()
        error = self._why_no_commit(values)
        if (
            values["groupId"] not in self._known.commits
            and len(self._known.commits) >= MOST_LIVE_GROUPS
        ):
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        topics = []
        for topic in values["topics"]:
            name, unknown = self._topic_asked(topic)
            partitions = []
            for each in topic["partitions"]:
                found = error
                number = each["partitionIndex"]
                if found is ErrorCode.NONE and self._known.cluster.partition(name, number) is None:
                    found = unknown
                if found is ErrorCode.NONE:
                    metadata = each["committedMetadata"] or ""
                    if len(metadata) > _LONGEST_METADATA:
                        found = ErrorCode.OFFSET_METADATA_TOO_LARGE
                if found is ErrorCode.NONE:
                    epoch = each.get("committedLeaderEpoch", -1)
                    self._of_group(values["groupId"], stored)[name, number] = Commit(
                        each["committedOffset"], epoch, metadata
                    )
                partitions.append({"partitionIndex": number, "errorCode": found})
            topics.append({**_named(topic), "partitions": partitions})
        return {"topics": topics}

    def _why_no_commit(self, values: Values) -> ErrorCode:
        group = self._known.live.get(values["groupId"])
        member_id, generation = values["memberId"], values["generationIdOrMemberEpoch"]
        if isinstance(group, ConsumerGroup) and group.members:
            return group.check(member_id, generation)
        if not isinstance(group, ClassicGroup) or not group.members:
            # Who has no group commits by itself.
            return ErrorCode.NONE if generation < 0 else ErrorCode.UNKNOWN_MEMBER_ID
        member, error = group.checked(member_id, generation)
        if member is not None:
            group.heard_of(member)
        return error

    def _of_group(self, group_id: str, stored: StoredGroups) -> dict[GroupPartition, Commit]:
        if group_id not in self._known.commits:
            self._known.commits[group_id] = dict(stored.commits.get(group_id, {}))
        return self._known.commits[group_id]

    async def offset_fetch(self, request: Request) -> Values:
        """Answer OffsetFetch: what members have committed since the start, else what is on disk."""
        values = request.values
        stored = await self._known.stored()
        if request.version >= _GROUPS_IN_REQUEST_SINCE:
            return {"groups": [self._fetched_group(each, stored) for each in values["groups"]]}
        topics = self._fetched(values["groupId"], values["topics"], stored)
        # Topics have no ids yet in these versions.
        by_name = [{key: each[key] for key in ("name", "partitions")} for each in topics]
        return {"errorCode": ErrorCode.NONE, "topics": by_name}

    def _fetched_group(self, asked: Values, stored: StoredGroups) -> Values:
        group_id, error = asked["groupId"], ErrorCode.NONE
        group = self._known.live.get(group_id)
        epoch = asked.get("memberEpoch", _NO_GENERATION)
        if epoch >= 0 and isinstance(group, ConsumerGroup):
            error = group.check(asked["memberId"] or _UNKNOWN_MEMBER, epoch)
        topics = [] if error else self._fetched(group_id, asked["topics"], stored)
        return {"groupId": group_id, "topics": topics, "errorCode": error}

    def _fetched(
        self, group_id: str, asked: list[Values] | None, stored: StoredGroups
    ) -> list[Values]:
        commits: Mapping[GroupPartition, Commit] = self._known.commits.get(
            group_id, stored.commits.get(group_id, {})
        )
        if asked is None:
            asked = self._all_committed(commits)
        return [
            {
                **_named(topic),
                "partitions": [
                    self._fetched_partition(commits, topic, number)
                    for number in topic["partitionIndexes"]
                ],
            }
            for topic in asked
        ]

    def _all_committed(self, commits: Mapping[GroupPartition, Commit]) -> list[Values]:
        numbers: dict[str, list[int]] = {}
        for name, number in sorted(commits):
            numbers.setdefault(name, []).append(number)
        found = []
        for name, partitions in numbers.items():
            topic = self._known.cluster.topics.get(name)
            topic_id = ZERO_UUID if topic is None else topic.id
            found.append({"name": name, "topicId": topic_id, "partitionIndexes": partitions})
        return found

    def _fetched_partition(
        self, commits: Mapping[GroupPartition, Commit], topic: Values, number: int
    ) -> Values:
        name, unknown = self._topic_asked(topic)
        commit = commits.get((name, number), Commit(NO_OFFSET))
        log = self._known.cluster.partition(name, number)
        # An epoch that is newer than the log's would have clients look for a newer leader for ever.
        epoch = -1 if log is None else min(commit.leader_epoch, log.leader_epoch)
        return {
            "partitionIndex": number,
            "committedOffset": commit.offset,
            "committedLeaderEpoch": epoch,
            "metadata": commit.metadata,
            "errorCode": ErrorCode.NONE if name else unknown,
        }

    def _topic_asked(self, topic: Values) -> tuple[str, ErrorCode]:
        """Return the name of a topic that is given by its name or its id, empty if there is none,
        and the error that says so."""
        if "name" in topic:
            return topic["name"], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self._known.name_of(topic["topicId"]) or "", ErrorCode.UNKNOWN_TOPIC_ID


def _named(topic: Values) -> Values:
    """Return what names a topic in a request, for the response."""
    return {name: value for name, value in topic.items() if name in ("name", "topicId")}
