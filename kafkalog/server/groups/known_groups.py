"""The groups that a server knows: those on disk, those with members now, and what these commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kafkalog.coordination.groups.group_records import GroupPartition
from kafkalog.messages.consumer_protocol import CONSUMER_PROTOCOL
from kafkalog.server.groups.classic_group import ClassicGroup
from kafkalog.server.groups.consumer_group import ConsumerGroup
from kafkalog.server.groups.stored_groups import Commit, StoredGroups
from kafkalog.server.logs.served_cluster import ServedCluster

CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"
MOST_LIVE_GROUPS = 10_000

LiveGroup = ClassicGroup | ConsumerGroup


class KnownGroups:
    """Groups by their id. `read_stored` reads those on disk, once."""

    def __init__(
        self, cluster: ServedCluster, read_stored: Callable[[], Awaitable[StoredGroups]]
    ) -> None:
        self.cluster = cluster
        self.live: dict[str, LiveGroup] = {}
        self.commits: dict[str, dict[GroupPartition, Commit]] = {}
        self._read_stored = read_stored
        self._stored: asyncio.Task[StoredGroups] | None = None

    async def stored(self) -> StoredGroups:
        """Return the groups on disk."""
        if self._stored is None:

            async def read() -> StoredGroups:
                return await self._read_stored()

            self._stored = asyncio.create_task(read())
        return await asyncio.shield(self._stored)

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
