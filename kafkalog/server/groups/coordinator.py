"""Which request about groups is answered where.

Nothing is written: what members commit is kept in memory. All but what reads files or takes time
runs in one event loop.
"""

from __future__ import annotations

from kafkalog.server.groups.committed_offsets import CommittedOffsets
from kafkalog.server.groups.descriptions import Descriptions
from kafkalog.server.groups.known_groups import KnownGroups
from kafkalog.server.groups.members import Members
from kafkalog.server.logs.served_cluster import ServedCluster
from kafkalog.server.protocol.requests import WaitingAnswer
from kafkalog.server.protocol.turns import Turns


class GroupCoordinator:
    """The groups of a server."""

    def __init__(self, cluster: ServedCluster, turns: Turns, *, takes_members: bool) -> None:
        self._known = KnownGroups(cluster, turns)
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
