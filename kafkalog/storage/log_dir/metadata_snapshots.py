"""Snapshots of KRaft's metadata, and the one that precedes a log without its beginning.

Rule: docs/format.md F329.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kafkalog.storage.files.files import entries_left
from kafkalog.storage.partition_log import PartitionLog

_SNAPSHOT = re.compile(r"(?P<end_offset>[0-9]{20})-(?P<leader_epoch>[0-9]{10})\.checkpoint")


class MetadataSnapshot(NamedTuple):
    """A snapshot's file: all of the state below `end_offset`, which a leader of `leader_epoch`
    wrote up to there."""

    end_offset: int
    leader_epoch: int
    path: str


def metadata_snapshots(log: PartitionLog) -> list[MetadataSnapshot]:
    """Return the finished snapshots beside a log of `__cluster_metadata`, in the order of their
    ends. Raises OSError for a directory that cannot be read."""
    found = (
        MetadataSnapshot(int(match["end_offset"]), int(match["leader_epoch"]), entry.path)
        for entry in entries_left(log.path)
        if (match := _SNAPSHOT.fullmatch(entry.name)) is not None
    )
    return sorted(found)


def snapshot_before(log: PartitionLog) -> str | None:
    """Return the path of the snapshot that replaces the deleted beginning of `__cluster_metadata`:
    None if the log has its beginning, or if no snapshot reaches its first segment.

    Raises OSError for a directory that cannot be read.
    """
    first_offset = log.segments[0].base_offset if log.segments else None
    if not first_offset:
        return None
    return next(
        (each.path for each in metadata_snapshots(log) if each.end_offset >= first_offset), None
    )


def is_metadata_snapshot(file_name: str) -> bool:
    """Return whether a file is a snapshot by its name."""
    return _SNAPSHOT.fullmatch(file_name) is not None
