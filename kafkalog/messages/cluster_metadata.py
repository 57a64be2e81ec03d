"""Topics and partition leaders from KRaft's metadata, as plain values. Rules: docs/format.md F195,
F323 and F329.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kafkalog.messages.internal_records import InternalRecord
from kafkalog.messages.metadata_transactions import records_in_force

_PARTITION_RECORDS = ("PartitionRecord", "PartitionChangeRecord")


@dataclass
class ClusterMetadata:
    """Names of topics by their ids, the ids of those that were deleted, and the broker that led a
    partition last, by topic id and partition."""

    names: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    leaders: dict[tuple[str, int], int] = field(default_factory=dict)

    def take(self, records: Iterable[InternalRecord]) -> None:
        """Take a snapshot's records, and then those of the log, in their order."""
        for record in records_in_force(records):
            value = record.value or {}
            if record.name == "TopicRecord":
                self.names[value["topicId"]] = value["name"]
            elif record.name == "RemoveTopicRecord":
                self.deleted.add(value["topicId"])
            elif record.name in _PARTITION_RECORDS and value.get("leader", -1) >= 0:
                # A change that leaves the leader as it is does not name it; a broker that stops
                # leaves its partitions without one.
                self.leaders[value["topicId"], value["partitionId"]] = value["leader"]

    def leaders_of(self, topic: str) -> dict[int, int]:
        """Return the leaders of a topic that was not deleted, by partition."""
        ids = {each for each, name in self.names.items() if name == topic} - self.deleted
        return {
            partition: leader for (each, partition), leader in self.leaders.items() if each in ids
        }
