"""Answers that list and describe groups."""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.coordination.groups.group_records import GroupMember
from kafkalog.messages.consumer_protocol import write_assignment
from kafkalog.messages.schema import ZERO_UUID, Values
from kafkalog.server.groups.classic_group import ClassicGroup
from kafkalog.server.groups.consumer_group import ConsumerGroup
from kafkalog.server.groups.known_groups import (
    CLASSIC,
    CONSUMER,
    SHARE,
    KnownGroups,
    LiveGroup,
    in_pieces,
)
from kafkalog.server.groups.stored_groups import StoredGroups
from kafkalog.server.protocol.error_codes import ErrorCode
from kafkalog.server.protocol.requests import Request

_DEAD = "Dead"
_NOT_FOUND_SINCE = 6
# The only one that there is; brokers do not write its name.
_SHARE_ASSIGNOR = "simple"
_OF_SHARE_MEMBER = (
    *("memberId", "rackId", "memberEpoch", "clientId", "clientHost"),
    *("subscribedTopicNames", "assignment"),
)


class Descriptions:
    """Groups with their states and members: those of now, else those on disk."""

    def __init__(self, known: KnownGroups) -> None:
        self._known = known

    async def list_groups(self, request: Request) -> Values:
        """Answer ListGroups: all groups, or those of one broker if the client says which it asks.
        Tools ask every broker, and all of these are this server."""
        stored = await self._known.stored()
        node, cluster = request.node, self._known.cluster
        states = {each.lower() for each in request.values.get("statesFilter", ())}
        types = {each.lower() for each in request.values.get("typesFilter", ())}
        listed = []
        every = sorted({*stored.groups, *self._known.live, *self._known.commits})
        async for group_id in in_pieces(every):
            if node is not None and cluster.group_coordinator(group_id) != node:
                continue
            kind, protocol_type, state = self._known.facts(group_id, stored)
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

    async def describe_groups(self, request: Request) -> Values:
        """Answer DescribeGroups: classic groups."""
        stored = await self._known.stored()
        groups = dict.fromkeys(request.values["groups"])
        found = [self._described(each, stored, request) async for each in in_pieces(groups, 1)]
        return {"groups": found}

    def _described(self, group_id: str, stored: StoredGroups, request: Request) -> Values:
        live, group = self._known.live.get(group_id), stored.groups.get(group_id)
        kind, protocol_type, state = self._known.facts(group_id, stored)
        is_known = live is not None or group is not None or group_id in self._known.commits
        if not is_known or kind != CLASSIC:
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
        stored = await self._known.stored()
        groups = dict.fromkeys(request.values["groupIds"])
        found = [self._described_consumer(each, stored) async for each in in_pieces(groups, 1)]
        return {"groups": found}

    def _described_consumer(self, group_id: str, stored: StoredGroups) -> Values:
        live, group = self._known.live.get(group_id), stored.groups.get(group_id)
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
        if live is None and group is not None and group.group_type == CONSUMER:
            return {
                "errorCode": ErrorCode.NONE,
                "groupId": group_id,
                "groupState": group.state or "Unknown",
                "groupEpoch": group.epoch or 0,
                "assignmentEpoch": group.target_epoch or 0,
                "assignorName": group.assignor or "",
                "members": [self._stored_member(each) for each in stored.members.get(group_id, ())],
            }
        return _unknown_group(group_id, "consumer")

    async def share_group_describe(self, request: Request) -> Values:
        """Answer ShareGroupDescribe: share groups, which are on disk only."""
        stored = await self._known.stored()
        groups = dict.fromkeys(request.values["groupIds"])
        found = [self._described_share(each, stored) async for each in in_pieces(groups, 1)]
        return {"groups": found}

    def _described_share(self, group_id: str, stored: StoredGroups) -> Values:
        group = stored.groups.get(group_id)
        if group is None or group.group_type != SHARE:
            return _unknown_group(group_id, "share")
        return {
            "errorCode": ErrorCode.NONE,
            "groupId": group_id,
            "groupState": group.state or "Unknown",
            "groupEpoch": group.epoch or 0,
            "assignmentEpoch": group.target_epoch or 0,
            "assignorName": group.assignor or _SHARE_ASSIGNOR,
            "members": [
                {name: self._stored_member(each)[name] for name in _OF_SHARE_MEMBER}
                for each in stored.members.get(group_id, ())
            ],
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
            name = each["topic"] or self._known.name_of(each["topic_id"] or "") or ""
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
            topic = self._known.cluster.topics.get(each["topicName"])
            found.append({**each, "topicId": ZERO_UUID if topic is None else topic.id})
        return {"topicPartitions": found}


def _unknown_group(group_id: str, kind: str) -> Values:
    return {
        "errorCode": ErrorCode.GROUP_ID_NOT_FOUND,
        "errorMessage": f"Group {group_id} is not a {kind} group.",
        "groupId": group_id,
        "groupState": _DEAD,
        "groupEpoch": 0,
        "assignmentEpoch": 0,
        "assignorName": "",
        "members": [],
    }
