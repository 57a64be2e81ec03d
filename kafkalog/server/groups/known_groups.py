"""The groups that a server knows: those on disk, those with members now, and what these commit."""

from __future__ import annotations

import asyncio
from collections import ChainMap
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kafkalog.coordination.groups.group_records import GroupPartition
from kafkalog.messages.consumer_protocol import CONSUMER_PROTOCOL
from kafkalog.server.groups.classic_group import ClassicGroup
from kafkalog.server.groups.consumer_group import ConsumerGroup
from kafkalog.server.groups.stored_groups import Commit, StoredGroups, stored_groups
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.protocol.held_bytes import HeldBytes, Holder, memory_of
from kafkalog.server.protocol.turns import Turns

_Item = TypeVar("_Item")

CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"
MOST_LIVE_GROUPS = 10_000
# All groups and their members in memory, and a group beside its id.
_MOST_MEMBER_BYTES = 64 * 1024 * 1024
_GROUP_BYTES = 2000
# Others get the event loop after this many items.
_ITEMS_AT_ONCE = 64

LiveGroup = ClassicGroup | ConsumerGroup


async def in_pieces(items: Iterable[_Item], at_once: int = _ITEMS_AT_ONCE) -> AsyncIterator[_Item]:
    """Yield items, and let others have the event loop between them."""
    for number, each in enumerate(items, 1):
        yield each
        if number % at_once == 0:
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A group in memory, as a holder of it."""

    known: KnownGroups
    group_id: str

    @property
    def name(self) -> str:
        """The group, for a message."""
        return f"group {self.group_id}"

    def drop(self) -> None:
        """Remove the group and its members."""
        members: list[Holder] = [*self.known.live[self.group_id].members.values()]
        for member in members:
            member.drop()
        self.known.forget(self.group_id)


class KnownGroups:
    """Groups by their id."""

    def __init__(self, cluster: ServedCluster, turns: Turns) -> None:
        self.cluster = cluster
        self.turns = turns
        self.live: dict[str, LiveGroup] = {}
        self.commits: dict[str, dict[GroupPartition, Commit]] = {}
        self.held = HeldBytes("group members", _MOST_MEMBER_BYTES)

    async def stored(self) -> StoredGroups:
        """Return the groups on disk, which are read once."""
        cluster = self.cluster
        return await self.turns.once(
            "groups", lambda: stored_groups(cluster.paths, cluster.logs, cluster.as_of_ms)
        )

    def commits_of(self, group_id: str, stored: StoredGroups) -> Mapping[GroupPartition, Commit]:
        """Return what a group has committed, since the start or else on disk. Do not change it."""
        on_disk = dict(stored.commits.get(group_id, {}))
        return ChainMap(self.commits.get(group_id, {}), on_disk)

    def add(self, group: LiveGroup) -> bool:
        """Keep a new group, in place of one without members if there are too many; return False
        where all have members. Raises RefusedRequestError if it takes too much memory."""
        self.forget(group.group_id)
        if len(self.live) >= MOST_LIVE_GROUPS:
            empty = next((key for key, each in self.live.items() if not each.members), None)
            if empty is None:
                return False
            self.forget(empty)
        self.held.put(_Kept(self, group.group_id), _GROUP_BYTES + memory_of((group.group_id,)))
        self.live[group.group_id] = group
        return True

    def forget(self, group_id: str) -> None:
        """Keep a group no more, if there is one."""
        group = self.live.pop(group_id, None)
        if group is not None:
            group.close()
            self.held.clear(_Kept(self, group_id))

    def name_of(self, topic_id: str) -> str | None:
        """Return the name of the topic with an id, None if there is none."""
        topic = self.cluster.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def facts(self, group_id: str, stored: StoredGroups) -> tuple[str, str, str]:
        """Return type, protocol type and state of a group."""
        live, group = self.live.get(group_id), stored.groups.get(group_id)
        if isinstance(live, ConsumerGroup):
            return CONSUMER, CONSUMER_PROTOCOL, live.state
        if isinstance(live, ClassicGroup):
            return CLASSIC, live.protocol_type, live.state
        if group is None:
            return CLASSIC, "", "Empty"
        protocol_type = group.protocol_type or ""
        if group.group_type not in (CLASSIC, None):
            protocol_type = str(group.group_type)
        return group.group_type or CLASSIC, protocol_type, group.state or "Unknown"
