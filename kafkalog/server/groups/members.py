"""Answers to members of groups: they join, stay and leave."""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.messages.schema import Values
from kafkalog.server.groups.classic_group import ClassicGroup
from kafkalog.server.groups.consumer_group import ConsumerGroup
from kafkalog.server.groups.known_groups import MOST_LIVE_GROUPS, KnownGroups, LiveGroup
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request

_MEMBERS_LEAVE_SINCE = 3


class Members:
    """Members of now, which only this server knows."""

    def __init__(self, known: KnownGroups) -> None:
        self._known = known

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
        group = self._known.live.get(request.values["groupId"])
        if not isinstance(group, ClassicGroup):
            return {"errorCode": ErrorCode.UNKNOWN_MEMBER_ID, "assignment": b""}
        return await group.sync(request)

    async def heartbeat(self, request: Request) -> Values:
        """Answer Heartbeat."""
        group = self._known.live.get(request.values["groupId"])
        if not isinstance(group, ClassicGroup):
            return {"errorCode": ErrorCode.UNKNOWN_MEMBER_ID}
        return {"errorCode": group.heartbeat(request.values)}

    async def leave_group(self, request: Request) -> Values:
        """Answer LeaveGroup."""
        values = request.values
        group = self._known.live.get(values["groupId"])

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
                    "topicId": self._known.cluster.topics[each["topicName"]].id,
                    "partitions": each["partitions"],
                }
                for each in by_topic
            ]
        }

    async def _classic(self, request: Request) -> ClassicGroup | ErrorCode:
        """Return the classic group that a request is about, a new one if need be."""
        group_id = request.values["groupId"]
        generation = await self._last_generation(group_id)
        group = self._known.live.get(group_id)
        if isinstance(group, ClassicGroup):
            return group
        error = self._why_not(group_id, group)
        if error is not ErrorCode.NONE:
            return error
        created = self._known.live[group_id] = ClassicGroup(group_id, generation)
        return created

    async def _consumer(self, request: Request) -> ConsumerGroup | ErrorCode:
        """Return the consumer group that a request is about, a new one if need be."""
        group_id = request.values["groupId"]
        epoch = await self._last_generation(group_id)
        group = self._known.live.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        error = self._why_not(group_id, group)
        if error is not ErrorCode.NONE:
            return error
        if request.values["memberEpoch"] != 0:
            return ErrorCode.UNKNOWN_MEMBER_ID
        partitions = {
            name: tuple(topic.partitions) for name, topic in self._known.cluster.topics.items()
        }
        created = ConsumerGroup(group_id, partitions, self._known.name_of, epoch)
        self._known.live[group_id] = created
        return created

    def _why_not(self, group_id: str, group: LiveGroup | None) -> ErrorCode:
        """Return why a group cannot be created; a group of another kind can be replaced if it has
        no members."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is not None and group.members:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if len(self._known.live) >= MOST_LIVE_GROUPS:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE

    async def _last_generation(self, group_id: str) -> int:
        group = (await self._known.stored()).groups.get(group_id)
        return 0 if group is None or group.epoch is None else max(group.epoch, 0)
