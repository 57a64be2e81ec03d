"""Answers about committed offsets: those on disk, and those that members commit, in memory."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalog.coordination.groups.group_records import GroupPartition
from kafkalog.messages.schema import ZERO_UUID, Values
from kafkalog.server.groups.classic_group import ClassicGroup
from kafkalog.server.groups.consumer_group import ConsumerGroup
from kafkalog.server.groups.known_groups import MOST_LIVE_GROUPS, KnownGroups, in_pieces
from kafkalog.server.groups.stored_groups import NO_OFFSET, Commit, StoredGroups
from kafkalog.server.logs.served_log import ServedLog
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.held_bytes import memory_of
from kafkalog.server.protocol.requests import Request
from kafkalog.server.protocol.turns import Pause, Steps

_UNKNOWN_MEMBER = ""
_NO_GENERATION = -1
_GROUPS_IN_REQUEST_SINCE = 8
# As brokers allow by default (offset.metadata.max.bytes).
_LONGEST_METADATA = 4096
# All commits in memory, and one beside its metadata.
_MOST_COMMIT_BYTES = 64 * 1024 * 1024
_COMMIT_BYTES = 300


class CommittedOffsets:
    """Commits of groups: what is on disk until a member commits."""

    def __init__(self, known: KnownGroups) -> None:
        self._known = known
        self._bytes = 0

    async def offset_commit(self, request: Request) -> Values:
        """Answer OffsetCommit: the offsets are kept in memory."""
        values = request.values
        group_id = values["groupId"]
        error = self._why_no_commit(values)
        if group_id not in self._known.commits and len(self._known.commits) >= MOST_LIVE_GROUPS:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        topics = []
        for topic in values["topics"]:
            name, unknown = self._topic_asked(topic)
            partitions = []
            async for each in in_pieces(topic["partitions"]):
                log = self._known.cluster.partition(name, each["partitionIndex"])
                found = error
                if found is ErrorCode.NONE:
                    found = unknown if log is None else self._commit(group_id, log, each)
                partitions.append({"partitionIndex": each["partitionIndex"], "errorCode": found})
            topics.append({**_named(topic), "partitions": partitions})
        return {"topics": topics}

    def _commit(self, group_id: str, log: ServedLog, asked: Values) -> ErrorCode:
        """Keep an offset; return why it cannot be kept."""
        metadata = asked["committedMetadata"] or ""
        if len(metadata) > _LONGEST_METADATA:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        commits = self._known.commits.get(group_id, {})
        commit = Commit(asked["committedOffset"], asked.get("committedLeaderEpoch", -1), metadata)
        before = commits.get((log.topic, log.partition))
        size = self._bytes + _commit_bytes(commit) - (_commit_bytes(before) if before else 0)
        if not commits:
            size += memory_of((group_id,))
        if size > _MOST_COMMIT_BYTES:
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        self._bytes = size
        self._known.commits[group_id] = commits
        commits[log.topic, log.partition] = commit
        return ErrorCode.NONE

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

    async def offset_fetch(self, request: Request) -> Values:
        """Answer OffsetFetch: what members have committed since the start, else what is on disk."""
        values = request.values
        stored = await self._known.stored()
        if request.version >= _GROUPS_IN_REQUEST_SINCE:
            # Each group once, as it is requested last.
            asked = {each["groupId"]: each for each in values["groups"]}
            return {"groups": [await self._fetched_group(each, stored) for each in asked.values()]}
        topics = await self._fetched(values["groupId"], values["topics"], stored)
        # Topics have no ids yet in these versions.
        by_name = [{key: each[key] for key in ("name", "partitions")} for each in topics]
        return {"errorCode": ErrorCode.NONE, "topics": by_name}

    async def _fetched_group(self, asked: Values, stored: StoredGroups) -> Values:
        group_id, error = asked["groupId"], ErrorCode.NONE
        group = self._known.live.get(group_id)
        epoch = asked.get("memberEpoch", _NO_GENERATION)
        if epoch >= 0 and isinstance(group, ConsumerGroup):
            error = group.check(asked["memberId"] or _UNKNOWN_MEMBER, epoch)
        topics = [] if error else await self._fetched(group_id, asked["topics"], stored)
        return {"groupId": group_id, "topics": topics, "errorCode": error}

    async def _fetched(
        self, group_id: str, asked: list[Values] | None, stored: StoredGroups
    ) -> list[Values]:
        # A copy: members may commit while another thread reads it.
        commits = dict(self._known.commits_of(group_id, stored))
        return await self._known.turns.run(self._offsets(commits, asked))

    def _offsets(
        self, commits: Mapping[GroupPartition, Commit], asked: list[Values] | None
    ) -> Steps[list[Values]]:
        """Return what is committed of the partitions that are requested, by default of all."""
        topics = []
        for topic in self._all_committed(commits) if asked is None else asked:
            partitions = []
            for number in topic["partitionIndexes"]:
                yield Pause.STEP
                partitions.append(self._fetched_partition(commits, topic, number))
            topics.append({**_named(topic), "partitions": partitions})
        return topics

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


def _commit_bytes(commit: Commit) -> int:
    return _COMMIT_BYTES + memory_of((commit.metadata,))


def _named(topic: Values) -> Values:
    """Return what names a topic in a request, for the response."""
    return {name: value for name, value in topic.items() if name in ("name", "topicId")}
