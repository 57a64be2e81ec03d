"""Answers about groups: those on disk, their members of now, and what these commit.

Nothing is written: what members commit is kept in memory. All but the reading of the stored groups
runs in one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from kafkalog.coordination.groups.group_records import GroupMember, GroupPartition
from kafkalog.messages.consumer_protocol import CONSUMER_PROTOCOL, write_assignment
from kafkalog.messages.schema import ZERO_UUID, Values
from kafkalog.server.groups.classic_group import ClassicGroup
from kafkalog.server.groups.consumer_group import ConsumerGroup
from kafkalog.server.groups.stored_groups import NO_OFFSET, Commit, StoredGroups
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request, WaitingAnswer

_DEAD = "Dead"
_UNKNOWN_MEMBER = ""
_NO_GENERATION = -1
_GROUPS_IN_REQUEST_SINCE = 8
_NOT_FOUND_SINCE = 6
_MEMBERS_LEAVE_SINCE = 3
_CLASSIC, _CONSUMER = "classic", "consumer"
_MOST_LIVE_GROUPS = 10_000
# As brokers allow by default (offset.metadata.max.bytes).
_LONGEST_METADATA = 4096

LiveGroup = ClassicGroup | ConsumerGroup


class GroupCoordinator:
    """The groups of a server. `read_stored` reads those on disk, once."""

    def __init__(
        self,
        cluster: ServedCluster,
        read_stored: Callable[[], Awaitable[StoredGroups]],
        *,
        takes_members: bool,
    ) -> None:
        self._cluster = cluster
        self._read_stored = read_stored
        self._stored: asyncio.Task[StoredGroups] | None = None
        self._live: dict[str, LiveGroup] = {}
        self._commits: dict[str, dict[GroupPartition, Commit]] = {}
        self.answers: dict[int, WaitingAnswer] = {
            9: self.offset_fetch,
            15: self.describe_groups,
            16: self.list_groups,
            69: self.consumer_group_describe,
        }
        if takes_members:
            self.answers |= {
                8: self.offset_commit,
                11: self.join_group,
                12: self.heartbeat,
                13: self.leave_group,
                14: self.sync_group,
                68: self.consumer_group_heartbeat,
            }

    def close(self) -> None:
        """Forget all members."""
        for group in self._live.values():
            group.close()

    async def stored(self) -> StoredGroups:
        """Return the groups on disk."""
        if self._stored is None:

            async def read() -> StoredGroups:
                return await self._read_stored()

            self._stored = asyncio.create_task(read())
        return await asyncio.shield(self._stored)

    # Members

    async def join_group(self, request: Request) -> Values:
        """Answer JoinGroup."""
        group = await self._classic(request)
        if isinstance(group, ErrorCode):
            member_id = request.values["memberId"]
            refused = {"errorCode": group, "protocolName": "", "leader": "", "members": []}
            return {**refused, "memberId": member_id}
        return await group.join(request)

    async def sync_group(self, request: Request) -> Values:
        """Answer SyncGroup."""
        group = self._live.get(request.values["groupId"])
        if not isinstance(group, ClassicGroup):
            return {"errorCode": ErrorCode.UNKNOWN_MEMBER_ID, "assignment": b""}
        return await group.sync(request)

    async def heartbeat(self, request: Request) -> Values:
        """Answer Heartbeat."""
        group = self._live.get(request.values["groupId"])
        if not isinstance(group, ClassicGroup):
            return {"errorCode": ErrorCode.UNKNOWN_MEMBER_ID}
        return {"errorCode": group.heartbeat(request.values)}

    async def leave_group(self, request: Request) -> Values:
        """Answer LeaveGroup."""
        values = request.values
        group = self._live.get(values["groupId"])

        def leave(member: Values) -> ErrorCode:
            if not isinstance(group, ClassicGroup):
                return ErrorCode.UNKNOWN_MEMBER_ID
            return group.leave(member["memberId"], member.get("groupInstanceId"))

        if request.version < _MEMBERS_LEAVE_SINCE:
            return {"errorCode": leave(values)}
        left = [
            {
                "memberId": each["memberId"],
                "groupInstanceId": each["groupInstanceId"],
                "errorCode": leave(each),
            }
            for each in values["members"]
        ]
        return {"errorCode": ErrorCode.NONE, "members": left}

    async def consumer_group_heartbeat(self, request: Request) -> Values:
        """Answer ConsumerGroupHeartbeat."""
        group = await self._consumer(request)
        if isinstance(group, ErrorCode):
            return {"errorCode": group, "memberEpoch": request.values["memberEpoch"]}
        answer = group.heartbeat(request)
        if answer.get("assignment"):
            answer["assignment"] = self._with_ids(answer["assignment"]["topicPartitions"])
        return answer

    def _with_ids(self, by_topic: Iterable[Values]) -> Values:
        return {
            "topicPartitions": [
                {
                    "topicId": self._cluster.topics[each["topicName"]].id,
                    "partitions": each["partitions"],
                }
                for each in by_topic
            ]
        }

    async def _classic(self, request: Request) -> ClassicGroup | ErrorCode:
        """Return the classic group that a request is about, a new one if need be."""
        group_id = request.values["groupId"]
        generation = await self._last_generation(group_id)
        group = self._live.get(group_id)
        if isinstance(group, ClassicGroup):
            return group
        error = self._why_not(group_id, group)
        if error is not ErrorCode.NONE:
            return error
        created = self._live[group_id] = ClassicGroup(group_id, generation)
        return created

    async def _consumer(self, request: Request) -> ConsumerGroup | ErrorCode:
        """Return the consumer group that a request is about, a new one if need be."""
        group_id = request.values["groupId"]
        epoch = await self._last_generation(group_id)
        group = self._live.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        error = self._why_not(group_id, group)
        if error is not ErrorCode.NONE:
            return error
        if request.values["memberEpoch"] != 0:
            return ErrorCode.UNKNOWN_MEMBER_ID
        partitions = {name: tuple(topic.partitions) for name, topic in self._cluster.topics.items()}
        created = ConsumerGroup(group_id, partitions, self._name_of, epoch)
        self._live[group_id] = created
        return created

    def _why_not(self, group_id: str, group: LiveGroup | None) -> ErrorCode:
        """Return why a group cannot be created; a group of another kind can be replaced if it has
        no members."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is not None and group.members:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if len(self._live) >= _MOST_LIVE_GROUPS:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE

    async def _last_generation(self, group_id: str) -> int:
        group = (await self.stored()).groups.get(group_id)
        return 0 if group is None or group.epoch is None else max(group.epoch, 0)

    def _name_of(self, topic_id: str) -> str | None:
        topic = self._cluster.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    # Offsets

    async def offset_commit(self, request: Request) -> Values:
        """Answer OffsetCommit: the offsets are kept in memory."""
        values = request.values
        stored = await self.stored()
        error = self._why_no_commit(values)
        if values["groupId"] not in self._commits and len(self._commits) >= _MOST_LIVE_GROUPS:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        topics = []
        for topic in values["topics"]:
            name, unknown = self._topic_asked(topic)
            partitions = []
            for each in topic["partitions"]:
                found = error
                number = each["partitionIndex"]
                if found is ErrorCode.NONE and self._cluster.partition(name, number) is None:
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
        group = self._live.get(values["groupId"])
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
        if group_id not in self._commits:
            self._commits[group_id] = dict(stored.commits.get(group_id, {}))
        return self._commits[group_id]

    async def offset_fetch(self, request: Request) -> Values:
        """Answer OffsetFetch: what members have committed since the start, else what is on disk."""
        values = request.values
        stored = await self.stored()
        if request.version >= _GROUPS_IN_REQUEST_SINCE:
            return {"groups": [self._fetched_group(each, stored) for each in values["groups"]]}
        topics = self._fetched(values["groupId"], values["topics"], stored)
        # Topics have no ids yet in these versions.
        by_name = [{key: each[key] for key in ("name", "partitions")} for each in topics]
        return {"errorCode": ErrorCode.NONE, "topics": by_name}

    def _fetched_group(self, asked: Values, stored: StoredGroups) -> Values:
        group_id, error = asked["groupId"], ErrorCode.NONE
        group = self._live.get(group_id)
        epoch = asked.get("memberEpoch", _NO_GENERATION)
        if epoch >= 0 and isinstance(group, ConsumerGroup):
            error = group.check(asked["memberId"] or _UNKNOWN_MEMBER, epoch)
        topics = [] if error else self._fetched(group_id, asked["topics"], stored)
        return {"groupId": group_id, "topics": topics, "errorCode": error}

    def _fetched(
        self, group_id: str, asked: list[Values] | None, stored: StoredGroups
    ) -> list[Values]:
        commits: Mapping[GroupPartition, Commit] = self._commits.get(
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
            topic = self._cluster.topics.get(name)
            topic_id = ZERO_UUID if topic is None else topic.id
            found.append({"name": name, "topicId": topic_id, "partitionIndexes": partitions})
        return found

    def _fetched_partition(
        self, commits: Mapping[GroupPartition, Commit], topic: Values, number: int
    ) -> Values:
        name, unknown = self._topic_asked(topic)
        commit = commits.get((name, number), Commit(NO_OFFSET))
        log = self._cluster.partition(name, number)
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
        return self._name_of(topic["topicId"]) or "", ErrorCode.UNKNOWN_TOPIC_ID

    # Descriptions

    async def list_groups(self, request: Request) -> Values:
        """Answer ListGroups."""
        stored = await self.stored()
        states = {each.lower() for each in request.values.get("statesFilter", ())}
        types = {each.lower() for each in request.values.get("typesFilter", ())}
        listed = []
        for group_id in sorted({*stored.groups, *self._live, *self._commits}):
            kind, protocol_type, state = self._facts(group_id, stored)
            if (states and state.lower() not in states) or (types and kind.lower() not in types):
                continue
            listed.append(
                {
                    "groupId": group_id,
                    "protocolType": protocol_type,
                    "groupState": state,
                    "groupType": kind,
                }
            )
        return {"errorCode": ErrorCode.NONE, "groups": listed}

    def _facts(self, group_id: str, stored: StoredGroups) -> tuple[str, str, str]:
        """Return type, protocol type and state of a group."""
        live, group = self._live.get(group_id), stored.groups.get(group_id)
        if isinstance(live, ConsumerGroup):
            return _CONSUMER, CONSUMER_PROTOCOL, live.state
        if isinstance(live, ClassicGroup):
            return _CLASSIC, live.protocol_type, live.state
        if group is None:
            return _CLASSIC, "", "Empty"
        protocol_type = group.protocol_type or ""
        if group.group_type not in (_CLASSIC, None):
            protocol_type = str(group.group_type)
        return group.group_type or _CLASSIC, protocol_type, group.state or "Unknown"

    async def describe_groups(self, request: Request) -> Values:
        """Answer DescribeGroups: classic groups."""
        stored = await self.stored()
        found = [self._described(each, stored, request) for each in request.values["groups"]]
        return {"groups": found}

    def _described(self, group_id: str, stored: StoredGroups, request: Request) -> Values:
        live, group = self._live.get(group_id), stored.groups.get(group_id)
        kind, protocol_type, state = self._facts(group_id, stored)
        is_known = live is not None or group is not None or group_id in self._commits
        if not is_known or kind != _CLASSIC:
            is_error = request.version >= _NOT_FOUND_SINCE
            return {
                "errorCode": ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE,
                "errorMessage": f"Group {group_id} is not a classic group." if is_error else None,
                "groupId": group_id,
                "groupState": _DEAD,
                "protocolType": "",
                "protocolData": "",
                "members": [],
            }
        protocol = live.protocol if isinstance(live, ClassicGroup) else group and group.assignor
        return {
            "errorCode": ErrorCode.NONE,
            "groupId": group_id,
            "groupState": state,
            "protocolType": protocol_type,
            "protocolData": protocol or "",
            "members": self._classic_members(live, stored.members.get(group_id, ())),
        }

    def _classic_members(
        self, live: LiveGroup | None, stored: Iterable[GroupMember]
    ) -> list[Values]:
        if isinstance(live, ClassicGroup):
            return [
                {
                    "memberId": each.member_id,
                    "groupInstanceId": each.instance_id,
                    "clientId": each.client_id,
                    "clientHost": f"/{each.client_host}",
                    "memberMetadata": each.metadata(live.protocol),
                    "memberAssignment": each.assignment,
                }
                for each in live.members.values()
            ]
        return [
            {
                "memberId": each.member_id,
                "groupInstanceId": each.instance_id,
                "clientId": each.client_id or "",
                "clientHost": each.client_host or "",
                "memberMetadata": b"",
                "memberAssignment": write_assignment(
                    {part["topic"]: part["partitions"] for part in each.assigned or ()}
                ),
            }
            for each in stored
        ]

    async def consumer_group_describe(self, request: Request) -> Values:
        """Answer ConsumerGroupDescribe: groups of the consumer protocol."""
        stored = await self.stored()
        found = [self._described_consumer(each, stored) for each in request.values["groupIds"]]
        return {"groups": found}

    def _described_consumer(self, group_id: str, stored: StoredGroups) -> Values:
        live, group = self._live.get(group_id), stored.groups.get(group_id)
        if isinstance(live, ConsumerGroup):
            return {
                "errorCode": ErrorCode.NONE,
                "groupId": group_id,
                "groupState": live.state,
                "groupEpoch": live.epoch,
                "assignmentEpoch": live.epoch,
                "assignorName": live.assignor,
                "members": [self._live_member(live, each) for each in live.members],
            }
        if live is None and group is not None and group.group_type == _CONSUMER:
            return {
                "errorCode": ErrorCode.NONE,
                "groupId": group_id,
                "groupState": group.state or "Unknown",
                "groupEpoch": group.epoch or 0,
                "assignmentEpoch": group.target_epoch or 0,
                "assignorName": group.assignor or "",
                "members": [self._stored_member(each) for each in stored.members.get(group_id, ())],
            }
        return {
            "errorCode": ErrorCode.GROUP_ID_NOT_FOUND,
            "errorMessage": f"Group {group_id} is not a consumer group.",
            "groupId": group_id,
            "groupState": _DEAD,
            "groupEpoch": 0,
            "assignmentEpoch": 0,
            "assignorName": "",
            "members": [],
        }

    def _live_member(self, group: ConsumerGroup, member_id: str) -> Values:
        member = group.members[member_id]
        return {
            "memberId": member_id,
            "instanceId": member.instance_id,
            "rackId": member.rack_id,
            "memberEpoch": member.epoch,
            "clientId": member.client_id,
            "clientHost": f"/{member.client_host}",
            "subscribedTopicNames": sorted(member.topics),
            "subscribedTopicRegex": member.regex,
            "assignment": self._named_and_with_ids(group.by_topic(member.assigned)),
            "targetAssignment": self._named_and_with_ids(group.by_topic(member.target)),
        }

    def _stored_member(self, member: GroupMember) -> Values:
        assigned = []
        for each in member.assigned or ():
            name = each["topic"] or self._name_of(each["topic_id"] or "") or ""
            assigned.append({"topicName": name, "partitions": list(each["partitions"])})
        known = self._named_and_with_ids(each for each in assigned if each["topicName"])
        return {
            "memberId": member.member_id,
            "instanceId": member.instance_id,
            "rackId": member.rack_id,
            "memberEpoch": member.member_epoch or 0,
            "clientId": member.client_id or "",
            "clientHost": member.client_host or "",
            "subscribedTopicNames": sorted(member.subscribed_topics or ()),
            "subscribedTopicRegex": None,
            "assignment": known,
            "targetAssignment": known,
        }

    def _named_and_with_ids(self, by_topic: Iterable[Values]) -> Values:
        found = []
        for each in by_topic:
            topic = self._cluster.topics.get(each["topicName"])
            found.append({**each, "topicId": ZERO_UUID if topic is None else topic.id})
        return {"topicPartitions": found}


def _named(topic: Values) -> Values:
    """Return what names a topic in a request, for the response."""
    return {name: value for name, value in topic.items() if name in ("name", "topicId")}
