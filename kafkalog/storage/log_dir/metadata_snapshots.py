"""Snapshots of KRaft's metadata, and the one that precedes a log without its beginning.

Rule: docs/format.md F329.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import entries_left
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.wire.java_text import java_integer

# The snapshot beside partitions from which a new cluster begins.
BOOTSTRAP = "bootstrap.checkpoint"
CHECKPOINT = ".checkpoint"
_ENDINGS = (CHECKPOINT, f"{CHECKPOINT}.part", f"{CHECKPOINT}.deleted")
_SNAPSHOT = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint")


class MetadataSnapshot(NamedTuple):
    """A snapshot's file: all of the state below `end_offset`, which a leader of `leader_epoch`
    wrote up to there."""

    end_offset: int
    leader_epoch: int
    path: str


def metadata_snapshots(log: PartitionLog) -> list[MetadataSnapshot]:
    """Return the finished snapshots beside a log of `__cluster_metadata`, in the order of their
    ends. Raises OSError for a directory that cannot be read."""
    found = (snapshot_in(each.path) for each in entries_left(log.path) if not each.is_directory)
    return sorted(each for each in found if each is not None)


def newest_metadata_snapshot(log: PartitionLog) -> MetadataSnapshot | None:
    """Return the snapshot that a broker starts from: of the latest epoch the one that ends last.
    Rule: docs/format.md F920."""
    found = metadata_snapshots(log)
    return max(found, key=lambda each: (each.leader_epoch, each.end_offset), default=None)


def snapshot_files(log: PartitionLog) -> list[Entry]:
    """Return the files that brokers take for snapshots beside a log of `__cluster_metadata`, and
    `bootstrap.checkpoint`; none for another log, and for one that was given by its files."""
    if log.topic != CLUSTER_METADATA or log.given_files:
        return []
    found = [entry for entry in entries_left(log.path) if is_snapshot_file(entry.name)]
    if os.path.dirname(log.path) == log.log_dir.path:
        found += [each for each in entries_left(log.log_dir.path) if each.name == BOOTSTRAP]
    return sorted(found, key=lambda entry: entry.path)


def snapshot_position(file_name: str) -> tuple[int, int] | None:
    """Return the leader epoch and the end offset that a broker reads in a name that ends as a
    snapshot's; None where it ends at the name. Rules: docs/format.md F921 and F1394."""
    end_offset, leader_epoch = java_integer(file_name[:20], 64), java_integer(file_name[21:31])
    return None if end_offset is None or leader_epoch is None else (leader_epoch, end_offset)


def is_snapshot_file(file_name: str) -> bool:
    """Return whether brokers take a file for a snapshot: one that is finished, being written or on
    its way out."""
    return file_name.endswith(_ENDINGS)


def snapshot_in(path: str) -> MetadataSnapshot | None:
    """Return the snapshot that a file is by its name; None for another file."""
    name = os.path.basename(path)
    position = snapshot_position(name) if _SNAPSHOT.fullmatch(name) else None
    return None if position is None else MetadataSnapshot(position[1], position[0], path)


def is_metadata_snapshot(file_name: str) -> bool:
    """Return whether a file is a snapshot by its name."""
    return snapshot_in(file_name) is not None
