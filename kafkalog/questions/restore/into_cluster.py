"""Partitions for a cluster that exists: with the ids of its topics, for its brokers, and with
leader epochs that it has had. Rules: docs/restore.md F1311 to F1314.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kafkalog.coordination.metadata.image import MetadataImage, Row
from kafkalog.errors import LogDirError
from kafkalog.format.side_files.leader_epochs import EpochStart
from kafkalog.inspection.metadata.copies import best_copy, metadata_copies
from kafkalog.inspection.metadata.replay import image_at
from kafkalog.questions.restore.metadata import RETENTION, ChangedConfig
from kafkalog.questions.restore.nodes import Node
from kafkalog.questions.restore.partitions.partition_plans import PartitionPlan

_CLEANUP, _TIERED = "cleanup.policy", "remote.storage.enable"


@dataclass(frozen=True)
class IntoCluster:
    """The cluster that gets the partitions, by the copy of its metadata at `path`."""

    path: str
    cluster_id: str | None
    image: MetadataImage

    @classmethod
    def of(cls, path: str) -> IntoCluster:
        """Return the cluster of a log directory with its metadata. Raises LogDirError where there
        is none, and CorruptDataError for one that cannot be read."""
        copy = best_copy(metadata_copies([path]))
        return cls(path, copy.cluster_id, image_at(copy.log).image)

    @cached_property
    def topic_ids(self) -> dict[str, str]:
        """The ids of its topics."""
        return {row["topic"]: key[0] for key, row in self.image.tables["topic"].items()}

    @cached_property
    def _partition_counts(self) -> Counter[str]:
        """How many partitions each topic id has."""
        return Counter(topic_id for topic_id, _ in self.image.tables["partition"])

    @cached_property
    def nodes(self) -> list[Node]:
        """Its brokers that have replicas; each gets a directory."""
        ids = {
            broker for row in self.image.tables["partition"].values() for broker in row["replicas"]
        }
        return [Node(each, "", 0, 0, f"node-{each}", "") for each in sorted(ids)]

    def nodes_of(self, topic: str, partition: int) -> list[Node]:
        """Return the brokers that have a partition."""
        replicas = self._partition(topic, partition)["replicas"]
        return [node for node in self.nodes if node.node_id in replicas]

    def leader_epoch(self, topic: str, partition: int) -> int:
        """Return the leader epoch of a partition."""
        return int(self._partition(topic, partition)["leader_epoch"])

    def _partition(self, topic: str, partition: int) -> Row:
        return self.image.tables["partition"][self.topic_ids[topic], partition]

    def _config(self, topic: str, name: str) -> str | None:
        row = self.image.tables["config"].get(("topic", topic, name))
        return None if row is None else row["value"]

    def refuse(self, topics: dict[str, int], compacted: set[str]) -> None:
        """Raise LogDirError where the cluster lacks one of the topics, has it with other
        partitions, or would remove what is restored. `topics` has the numbers of partitions."""
        reasons = [
            reason
            for topic, number in sorted(topics.items())
            for reason in self._reasons(topic, number, is_compacted=topic in compacted)
        ]
        if reasons:
            raise LogDirError(f"the cluster of {self.path} cannot take this: {'; '.join(reasons)}")

    def _reasons(self, topic: str, number: int, *, is_compacted: bool) -> Iterator[str]:
        if topic not in self.topic_ids:
            yield f"it has no topic {topic}: create it with --partitions {number}, or choose others"
            return
        has = self._partition_counts[self.topic_ids[topic]]
        if has != number:
            yield f"topic {topic} has {has} partitions there, and {number} are restored"
        policy = self._config(topic, _CLEANUP) or "delete"
        if "compact" in policy and not is_compacted:
            yield f"topic {topic} has {_CLEANUP}={policy} there: the cleaner would remove records"
        if self._config(topic, _TIERED) == "true":
            yield f"topic {topic} has {_TIERED}=true there: its segments would go to the store"

    def adopted(self, plan: PartitionPlan) -> PartitionPlan:
        """Return the plan of a partition with the cluster's topic id, and with no leader epoch
        above the cluster's."""
        highest = self.leader_epoch(plan.topic, plan.partition)
        return replace(
            plan,
            topic_id=self.topic_ids[plan.topic],
            epochs=tuple(lowered_epochs(plan.epochs, highest)),
            max_epoch=min(plan.max_epoch, highest),
        )

    def retention(self, topics: Sequence[str]) -> list[ChangedConfig]:
        """Return the configs to change before the brokers see old records."""
        return [
            ChangedConfig("topic", topic, config, self._config(topic, config), "-1")
            for topic in topics
            for config in RETENTION
            if self._config(topic, config) != "-1"
            and "delete" in (self._config(topic, _CLEANUP) or "delete")
        ]


def lowered_epochs(epochs: Sequence[EpochStart], highest: int) -> list[EpochStart]:
    """Return leader epochs and where they began, with none above the highest."""
    lowered: list[EpochStart] = []
    for each in epochs:
        epoch = min(each.epoch, highest)
        if not lowered or lowered[-1].epoch < epoch:
            lowered.append(EpochStart(epoch, each.start_offset))
    return lowered
