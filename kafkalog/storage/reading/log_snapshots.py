"""The producer snapshots beside a log, as a reader uses them. Rules: docs/format.md F106, F213."""

from __future__ import annotations

import os

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.producer_snapshot import ProducerEntry, read_producer_snapshot
from kafkalog.storage.files.files import entries_left, read_bytes
from kafkalog.storage.names import snapshot_offset
from kafkalog.storage.partition_log import PartitionLog


def snapshot_entries(log: PartitionLog, offset: int) -> list[ProducerEntry] | None:
    """Return the producers of a log at an offset; None where no sound snapshot was taken there."""
    try:
        return read_producer_snapshot(read_bytes(os.path.join(log.path, f"{offset:020d}.snapshot")))
    except (FileNotFoundError, CorruptDataError):
        return None


def newest_snapshot(
    log: PartitionLog, lowest: int, highest: int
) -> tuple[int, list[ProducerEntry]] | None:
    """Return the newest sound snapshot of those taken for these offsets, and for which it was."""
    offsets = (snapshot_offset(entry.name) for entry in entries_left(log.path))
    in_range = (found for found in offsets if found is not None and lowest <= found <= highest)
    for offset in sorted(in_range, reverse=True):
        entries = snapshot_entries(log, offset)
        if entries is not None:
            return offset, entries
    return None
