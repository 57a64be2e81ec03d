"""Topics and partition leaders from KRaft's metadata, as plain values. Rules: docs/format.md F195,
F323 and F329.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kafkalog.messages.internal_records import InternalRecord
from kafkalog.messages.metadata_transactions import records_in_force
from kafkalog.messages.schema import Values

_PARTITION_RECORDS = ("PartitionRecord", "PartitionChangeRecord")
_Fact = TypeVar("_Fact")


@dataclass
class ClusterMetadata:
    """Names of topics by their ids, the ids of those that were deleted, and of each partition, by
    topic id and number, the broker that led it last, its replicas, and those in sync; and configs
    by the type and the name of what they are of."""

    names: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    leaders: dict[tuple[str, int], int] = field(default_factory=dict)
    replicas: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    in_sync: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)

    def take(self, records: Iterable[InternalRecord]) -> None:
        """Take a snapshot's records, and then those of the log, in their order. Records that cannot
        be read say nothing."""
        for record in records_in_force(records):
            value = record.value
            if value is None:
                continue
            if record.name == "TopicRecord":
                self.names[value["topicId"]] = value["name"]
            elif record.name == "RemoveTopicRecord":
                self.deleted.add(value["topicId"])
            elif record.name in _PARTITION_RECORDS:
                self._take_partition(value)
            elif record.name == "ConfigRecord":
                self._take_config(value)

    def _take_partition(self, value: Values) -> None:
        """Take a record about a partition: a change names only what it changes."""
        key = value["topicId"], value["partitionId"]
        if value.get("leader", -1) >= 0:
            # A broker that stops leaves its partitions without a leader.
            self.leaders[key] = value["leader"]
        for known, name in ((self.replicas, "replicas"), (self.in_sync, "isr")):
            if value.get(name) is not None:
                known[key] = value[name]

    def _take_config(self, value: Values) -> None:
        configs = self.configs.setdefault((value["resourceType"], value["resourceName"]), {})
        if value["value"] is None:
            configs.pop(value["name"], None)
        else:
            configs[value["name"]] = value["value"]

    def leaders_of(self, topic: str) -> dict[int, int]:
        """Return the leaders of a topic that was not deleted, by partition."""
        return self._of(topic, self.leaders)

    def replicas_of(self, topic: str) -> dict[int, list[int]]:
        """Return the brokers that the partitions of such a topic are on."""
        return self._of(topic, self.replicas)

    def in_sync_of(self, topic: str) -> dict[int, list[int]]:
        """Return those of them that were in sync."""
        return self._of(topic, self.in_sync)

    def _of(self, topic: str, known: Mapping[tuple[str, int], _Fact]) -> dict[int, _Fact]:
        ids = {each for each, name in self.names.items() if name == topic} - self.deleted
        return {partition: fact for (each, partition), fact in known.items() if each in ids}
