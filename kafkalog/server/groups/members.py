"""Answers to members of groups: they join, stay and leave."""

from __future__ import annotations

from collections.abc import Iterable

import re2

from kafkalog.messages.schema import Values
from kafkalog.server.groups.classic_group import ClassicGroup
from kafkalog.server.groups.consumer_group import ConsumerGroup
from kafkalog.server.groups.known_groups import KnownGroups, LiveGroup, in_pieces
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request, pattern
from kafkalog.server.protocol.turns import Pause, Steps

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
            async for each in in_pieces(values["members"])
        ]
        return {"errorCode": ErrorCode.NONE, "members": left}

    async def consumer_group_heartbeat(self, request: Request) -> Values:
        """Answer ConsumerGroupHeartbeat."""
        try:
            matched = await self._matched(request.values.get("subscribedTopicRegex"))
        except re2.error:
            return _no_epoch(request, ErrorCode.INVALID_REGULAR_EXPRESSION)
        group = await self._consumer(request)
        if isinstance(group, ErrorCode):
            return _no_epoch(request, group)
        answer = group.heartbeat(request, matched)
        if answer.get("assignment"):
            answer["assignment"] = self._with_ids(answer["assignment"]["topicPartitions"])
        return answer

    async def _matched(self, regex: str | None) -> frozenset[str]:
        """Return the topics whose whole name an expression matches. Raises re2.error."""
        if not regex:
            return frozenset()
        return await self._known.turns.run(_matching(regex, self._known.cluster.topics), len(regex))

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
        created = ClassicGroup(group_id, self._known.held, generation)
        return created if self._known.add(created) else ErrorCode.COORDINATOR_NOT_AVAILABLE

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
        known = self._known
        created = ConsumerGroup(group_id, known.held, partitions, known.name_of, epoch)
        return created if known.add(created) else ErrorCode.COORDINATOR_NOT_AVAILABLE

    def _why_not(self, group_id: str, group: LiveGroup | None) -> ErrorCode:
        """Return why a group cannot be created; a group of another kind can be replaced if it has
        no members."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is not None and group.members:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    async def _last_generation(self, group_id: str) -> int:
        group = (await self._known.stored()).groups.get(group_id)
        return 0 if group is None or group.epoch is None else max(group.epoch, 0)


def _no_epoch(request: Request, error: ErrorCode) -> Values:
    """Return the answer to a heartbeat that changes nothing."""
    values = request.values
    return {
        "errorCode": error,
        "memberId": values["memberId"],
        "memberEpoch": values["memberEpoch"],
    }


def _matching(regex: str, names: Iterable[str]) -> Steps[frozenset[str]]:
    """Return the names that an expression matches. Raises re2.error."""
    expression = pattern(regex)
    found = set()
    for name in names:
        yield Pause.STEP
        if expression.fullmatch(name):
            found.add(name)
    return frozenset(found)
