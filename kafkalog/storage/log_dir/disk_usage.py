"""What the files of log directories take, by their kinds. Names: docs/format.md F91 to F94."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import Directories, readable_entries
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.metadata_snapshots import is_metadata_snapshot
from kafkalog.storage.log_dir.other_entries import INDEX_CACHE, OF_LOG_DIRS, OF_PARTITIONS
from kafkalog.storage.log_dir.tiered_storage import is_beside_tiered_log
from kafkalog.storage.names import (
    any_base_offset,
    oldest_base_offset,
    partition_name,
    segment_file_name,
    snapshot_offset,
)
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.recovery.temporary_files import CLEANED, DELETED, SWAP

_SEGMENTS = "segments"
_INDEXES = "indexes"
_SNAPSHOTS = "snapshots"
_CHECKPOINTS = "checkpoints"
_OTHER = "other"


class DiskUsage(NamedTuple):
    """The files of one kind below a directory: how many, the sum of their lengths in bytes, and the
    bytes that the file system has given them, None for a remote one. That is less for indexes that
    a broker has preallocated and the file system keeps as holes."""

    directory: str
    kind: str
    files: int
    size: int
    allocated: int | None


def disk_usage(logs: Sequence[PartitionLog], *, whole: bool) -> list[DiskUsage]:
    """Return what each directory has, the largest kind first: with `whole`, the log directories
    with everything in them, otherwise the directories of these logs."""
    logs = [log for log in logs if not log.given_files]
    # The older segments of a log can be in tiered storage.
    places = {
        os.path.dirname(path) if whole and not log.is_named else path
        for log in logs
        for path in (log.path, *(os.path.dirname(segment.path) for segment in log.segments))
    }
    directories = Directories()
    usages = []
    for place in sorted(places):
        kinds: dict[str, list[tuple[int, int | None]]] = {}
        for entry, kind in _files(directories, place):
            kinds.setdefault(kind, []).append((entry.size, _allocated(entry)))
        for kind, sizes in kinds.items():
            allocated = [each for _, each in sizes if each is not None]
            usages.append(
                DiskUsage(
                    place,
                    kind,
                    len(sizes),
                    sum(size for size, _ in sizes),
                    None if is_remote(place) else sum(allocated),
                )
            )
    return sorted(usages, key=lambda usage: (usage.directory, -usage.size, usage.kind))


def _files(directories: Directories, top: str) -> Iterator[tuple[Entry, str]]:
    """Yield the files at any depth with their kinds; everything in a marked directory is of one.

    Of links to directories only those to partitions count, and nothing below these: a link can lead
    anywhere, also back.
    """
    left: list[tuple[str, str | None, bool]] = [(top, None, False)]
    while left:
        path, kind, is_linked = left.pop()
        for entry in _entries(directories, path):
            if not entry.is_directory:
                yield entry, kind or _kind(entry.name)
                continue
            is_link = not is_remote(entry.path) and os.path.islink(entry.path)
            if not is_linked and (not is_link or partition_name(entry.name) is not None):
                left.append((entry.path, kind or _directory_kind(entry.name), is_link))


def _entries(directories: Directories, path: str) -> list[Entry]:
    try:
        return readable_entries(path, directories.entries)
    except FileNotFoundError:
        return []  # it has been removed meanwhile


def _directory_kind(name: str) -> str | None:
    if name == INDEX_CACHE:
        return name
    partition = partition_name(name)
    return f"-{partition.mark}" if partition is not None and partition.mark else None


def _kind(name: str) -> str:
    ending = os.path.splitext(name)[1]
    if ending in (DELETED, CLEANED, SWAP):
        return ending
    if any_base_offset(name) is not None or oldest_base_offset(name) is not None:
        return _SEGMENTS
    if segment_file_name(name) is not None or ending == ".indexes":
        return _INDEXES
    if snapshot_offset(name) is not None or is_metadata_snapshot(name) or ending == ".snapshot":
        return _SNAPSHOTS
    if name in OF_LOG_DIRS or name in OF_PARTITIONS or is_beside_tiered_log(name):
        return _CHECKPOINTS
    return _OTHER


def _allocated(entry: Entry) -> int | None:
    """Return the bytes that a file takes; None for a remote one, and where it cannot be known."""
    try:
        return None if is_remote(entry.path) else os.stat(entry.path).st_blocks * 512
    except OSError:
        return None
