"""What a task reads of whole partitions. Planning needs no more than this: what computes the rows
of their views takes longer to import than a small log to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkalog.storage.log_dir.topic_configs import (
    CompactionSettings,
    RetentionSettings,
    TopicConfigs,
)
from kafkalog.storage.partition_log import PartitionLog, bytes_in, with_own_checkpoints


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """A partition's directory, to be read as a whole, what its topic's retention and cleaning go
    by, and an earlier copy of it."""

    log: PartitionLog
    retention: RetentionSettings
    compaction: CompactionSettings
    before: PartitionLog | None = None

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.log.segments)


def partition_read(
    log: PartitionLog, configs: TopicConfigs, before: PartitionLog | None = None
) -> PartitionRead:
    """Return the read of a partition, with nothing in it about others."""
    return PartitionRead(
        with_own_checkpoints(log),
        configs.retention(log.topic),
        configs.compaction(log.topic),
        None if before is None else with_own_checkpoints(before),
    )


@dataclass(frozen=True, slots=True)
class ReplicaSetRead:
    """All replicas of a partition, to be compared, or to choose the best."""

    logs: tuple[PartitionLog, ...]

    @property
    def size(self) -> int:
        return bytes_in(self.logs)


def replica_set_read(logs: Sequence[PartitionLog]) -> ReplicaSetRead:
    """Return the read of a partition's replicas, with nothing in it about others."""
    return ReplicaSetRead(tuple(with_own_checkpoints(log) for log in logs))
