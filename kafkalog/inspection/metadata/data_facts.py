"""What a partition's directory says that a new `__cluster_metadata` needs. Rules: docs/format.md
F811 to F813.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.producer_snapshot import producer_entries
from kafkalog.inspection.logs.replica_facts import replica_facts, segment_tail
from kafkalog.storage.files.files import entries_left, read_bytes
from kafkalog.storage.names import snapshot_offset
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.replicas import ReplicaFacts


class LogFacts(NamedTuple):
    """What a partition directory says: of the log, its newest leader epoch, and the highest
    producer id that its broker remembers; -1 without one."""

    replica: ReplicaFacts
    last_epoch: int
    producer_id: int


def log_facts(log: PartitionLog) -> LogFacts:
    """Return what the directory says: of the last segment with batches the headers are read."""
    rows = next((rows for rows in map(_rows, reversed(log.segments)) if len(rows)), None)
    epoch, producer_ids = -1, [*_snapshot_producer_ids(log), -1]
    if rows is not None:
        epoch = int(rows[-1, column.LEADER_EPOCH])
        producer_ids.append(int(rows[:, column.PRODUCER_ID].max()))
    facts = replica_facts(log)
    return LogFacts(facts, max(facts.last_epoch, epoch), max(producer_ids))


def _rows(segment: SegmentFile) -> LongArray:
    return segment_tail(segment)[0]


def _snapshot_producer_ids(log: PartitionLog) -> list[int]:
    """Return the producer ids in the newest producer snapshot that can be read."""
    entries = [each for each in entries_left(log.path) if snapshot_offset(each.name) is not None]
    for entry in sorted(entries, key=lambda entry: entry.name, reverse=True):
        try:
            return [each.producer_id for each in producer_entries(read_bytes(entry.path))]
        except CorruptDataError:
            continue
    return []


def is_tiered(log: PartitionLog) -> bool:
    """Return whether the checkpoint has the log begin before its first segment: the beginning is in
    tiered storage."""
    starts, first = log.log_dir.log_starts, log.segments[0].base_offset if log.segments else None
    key = log.topic_partition
    return key is not None and key in starts and first is not None and starts[key] < first
