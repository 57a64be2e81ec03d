"""Snapshots of KRaft's metadata, and the one that precedes a log without its beginning.

Rule: docs/format.md F329.
"""

from __future__ import annotations

import re

from kafkalog.storage.files.files import list_directory
from kafkalog.storage.partition_log import PartitionLog

_SNAPSHOT = re.compile(r"(?P<end_offset>[0-9]{20})-(?P<leader_epoch>[0-9]{10})\.checkpoint")


def snapshot_before(log: PartitionLog) -> str | None:
    """Return the path of the snapshot that replaces the deleted beginning of `__cluster_metadata`:
    None if the log has its beginning, or if no snapshot reaches its first segment.

    Raises OSError for a directory that cannot be read.
    """
    first_offset = log.segments[0].base_offset if log.segments else None
    if not first_offset:
        return None
    ends = {
        int(match["end_offset"]): entry.path
        for entry in list_directory(log.path)
        if (match := _SNAPSHOT.fullmatch(entry.name)) is not None
    }
    return ends.get(min((end for end in ends if end >= first_offset), default=-1))


def is_metadata_snapshot(file_name: str) -> bool:
    """Return whether a file is a snapshot by its name."""
    return _SNAPSHOT.fullmatch(file_name) is not None
