"""Which request about groups is answered where.

Nothing is written: what members commit is kept in memory. All but the reading of the stored groups
runs in one event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kafkalog.server.groups.committed_offsets import CommittedOffsets
from kafkalog.server.groups.descriptions import Descriptions
from kafkalog.server.groups.known_groups import KnownGroups
from kafkalog.server.groups.members import Members
from kafkalog.server.groups.stored_groups import StoredGroups
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.protocol.requests import WaitingAnswer


class GroupCoordinator:
    """The groups of a server. `read_stored` reads those on disk, once."""

    def __init__(
        self,
        cluster: ServedCluster,
        read_stored: Callable[[], Awaitable[StoredGroups]],
        *,
        takes_members: bool,
    ) -> None:
        self._known = KnownGroups(cluster, read_stored)
        members, offsets = Members(self._known), CommittedOffsets(self._known)
        descriptions = Descriptions(self._known)
        self.answers: dict[int, WaitingAnswer] = {
            9: offsets.offset_fetch,
            15: descriptions.describe_groups,
            16: descriptions.list_groups,
            69: descriptions.consumer_group_describe,
            77: descriptions.share_group_describe,
        }
        if takes_members:
            self.answers |= {
                8: offsets.offset_commit,
                11: members.join_group,
                12: members.heartbeat,
                13: members.leave_group,
                14: members.sync_group,
                68: members.consumer_group_heartbeat,
            }

    def close(self) -> None:
        """Forget all members."""
        for group in self._known.live.values():
            group.close()
