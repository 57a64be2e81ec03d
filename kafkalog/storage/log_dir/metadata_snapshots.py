"""Snapshots of KRaft's metadata, and which of them a log without its beginning goes on from.

Rule: docs/format.md F329.
"""

from __future__ import annotations

import re

from kafkalog.storage.files.files import list_directory
from kafkalog.storage.partition_log import PartitionLog

_SNAPSHOT = re.compile(r"(?P<end_offset>[0-9]{20})-(?P<leader_epoch>[0-9]{10})\.checkpoint")


def snapshot_before(log: PartitionLog) -> str | None:
    """The path of the snapshot that says what stood in `__cluster_metadata` before the segments
    that are left of it: None where nothing is gone, or no snapshot reaches to them.

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
    """Whether a file is a snapshot by its name."""
    return _SNAPSHOT.fullmatch(file_name) is not None
