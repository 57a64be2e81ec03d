"""What becomes of each partition in a node's directories by the cluster's metadata.

Rules: docs/format.md F967 to F970.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafkalog.coordination.metadata.codes import MIGRATING, UNASSIGNED
from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.inspection.metadata.assigned_partitions import assigned_directory
from kafkalog.storage.names import PartitionName
from kafkalog.storage.partition_log import PARTITION_METADATA

# Where a replica's directory is not known: a broker says where it has it.
_LOST = "A" * 21 + "g"
_ANYWHERE = (MIGRATING, UNASSIGNED, _LOST)
WITHOUT_ID = f"{PARTITION_METADATA} is missing, and without it the topic's id is not known"


@dataclass(frozen=True, slots=True)
class ReplicaFate:
    """Whether a partition's directory is set aside, and why; whether the partition has a leader
    once the node runs, None where that is not known; whether it begins empty in its place, the
    directory that takes the place at once; and the line to type, where there is one of its own."""

    is_set_aside: bool = False
    reason: str | None = None
    has_leader: bool | None = None
    begins_empty: bool = False
    replaced_by: str | None = None
    what_to_do: str | None = None


@dataclass(frozen=True, slots=True)
class Assignments:
    """The metadata of a cluster as a node finds it, the ids of its topics by name, and the
    directory ids that the node has online."""

    image: MetadataImage
    node_id: int
    online: Collection[str]
    topic_ids: Mapping[str, str]

    @classmethod
    def of(cls, image: MetadataImage, node_id: int, online: Collection[str]) -> Assignments:
        """Return the assignments of a node."""
        ids = {row["topic"]: topic_id for (topic_id,), row in image.tables["topic"].items()}
        return cls(image, node_id, online, ids)

    def fate(self, topic_id: str | None, name: PartitionName) -> ReplicaFate:
        """Return what becomes of a partition's directory that is in use, by the topic's id in
        it."""
        row = self._row(self.topic_ids.get(name.topic), name.partition)
        reason = self.stray_reason(topic_id, name)
        if reason is not None:
            is_here = row is not None and self.node_id in row["replicas"]
            has_leader = self._has_leader(row) if row is not None else None
            return ReplicaFate(True, reason, has_leader, begins_empty=is_here and bool(has_leader))
        return ReplicaFate(has_leader=None if row is None else self._has_leader(row))

    def assigned_to(self, topic_id: str | None, number: int) -> str | None:
        """Return the id of the directory that a partition of this topic id is assigned to."""
        return assigned_directory(self.image, (topic_id, number), self.node_id)

    def offline_fate(self, name: PartitionName) -> ReplicaFate:
        """Return what becomes of a partition whose directory is offline: others can lead it."""
        row = self._row(self.topic_ids.get(name.topic), name.partition)
        return ReplicaFate(has_leader=row is not None and self._has_others(row))

    def absent(
        self, present: Collection[tuple[str, int]]
    ) -> Iterator[tuple[str, int, ReplicaFate]]:
        """Yield the partitions of the node that have no directory: it makes an empty one."""
        for (topic_id, number), row in self.image.tables["partition"].items():
            topic = self.image.topic_of("topic", (topic_id,))
            if topic is None or (topic, number) in present or self.node_id not in row["replicas"]:
                continue
            has_leader = self._has_leader(row)
            yield topic, number, ReplicaFate(False, None, has_leader, begins_empty=has_leader)

    def place(self, topic: str, number: int) -> str | None:
        """Return the id of the directory that a partition is assigned to."""
        return self.assigned_to(self.topic_ids.get(topic), number)

    def _row(self, topic_id: str | None, number: int) -> Mapping[str, Any] | None:
        return self.image.tables["partition"].get((topic_id, number))

    def stray_reason(self, topic_id: str | None, name: PartitionName) -> str | None:
        """Return why a directory with this topic's id is set aside, None where it is not."""
        if topic_id is None:
            return WITHOUT_ID
        row = self._row(topic_id, name.partition)
        if row is not None:
            if self.node_id in row["replicas"]:
                return None
            others = ", ".join(map(str, row["replicas"]))
            return f"the metadata has its replicas on {others}, not on node {self.node_id}"
        current = self.topic_ids.get(name.topic)
        if current is not None and current != topic_id:
            return f"topic {name.topic} was made again: its id is {current}, not {topic_id}"
        if current is not None:
            return f"topic {name.topic} has no partition {name.partition} by the metadata"
        if not self.image.tables["topic"]:
            return "the metadata is missing: it has no topic"
        return (
            f"the metadata has no topic of the id {topic_id}: it was deleted, or the metadata is "
            "older than the data"
        )

    def _has_leader(self, row: Mapping[str, Any]) -> bool:
        """Return whether a replica that can lead is there, with its directory."""
        if self._has_others(row):
            return True
        in_sync = row["isr"] or row["eligible_leader_replicas"]
        if self.node_id not in row["replicas"] or self.node_id not in in_sync:
            return False
        place = row["directories"][row["replicas"].index(self.node_id)]
        return place in _ANYWHERE or place in self.online

    def _has_others(self, row: Mapping[str, Any]) -> bool:
        brokers = self.image.tables["broker"]
        return any(each != self.node_id and (each,) in brokers for each in row["isr"])
