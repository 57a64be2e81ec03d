"""The segment files in a partition's directory, live or not, and what a broker makes of each when
it starts. Rule: docs/format.md F137; names: F91, F92, F94 and F117.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.indexes import OffsetEntry
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import read_bytes
from kafkalog.storage.names import SegmentFileName, partition_name, segment_file_name
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.recovery.loaded_segment import LoadedSegment, read_index_entries
from kafkalog.storage.recovery.producer_state import BrokerStartError
from kafkalog.storage.recovery.temporary_files import (
    CLEANED,
    DELETED,
    SWAP,
    dropped_files,
    finished_swaps,
    is_replaced,
)

LOG = ".log"
MARKED_DIRECTORIES = {
    "delete": "the directory is marked for deletion: its topic or this replica was deleted",
    "stray": "the broker found that the replica does not belong to it any more",
    "future": "a replica that is being moved here and has not caught up yet",
}


class SegmentStatus(Enum):
    """What a broker does with a segment's files when it starts."""

    ACTIVE = "active"
    LIVE = "live"
    TAKES_OVER = "takes_over"
    REPLACED = "replaced"
    DROPPED = "dropped"
    NOT_SERVED = "not_served"


@dataclass(frozen=True, slots=True)
class FoundSegment:
    """The log file of a segment and its indexes by their kinds; there may be no log file.

    `next_base_offset` is that of the next segment of the same status, None without one or if it has
    no meaning.
    """

    name: SegmentFileName
    files: Mapping[str, Entry]
    status: SegmentStatus
    reason: str
    next_base_offset: int | None = None

    @property
    def file(self) -> Entry:
        """The log file, or an index without one."""
        return self.files.get(LOG) or next(iter(self.files.values()))


def found_segments(log: PartitionLog, entries: Sequence[Entry]) -> list[FoundSegment]:
    """Return all segments with files in the partition's directory, by offset; for a log that was
    given by its files, only these."""
    groups: dict[tuple[str, str], dict[str, Entry]] = {}
    names: dict[tuple[str, str], SegmentFileName] = {}
    for entry in entries:
        name = segment_file_name(entry.name)
        if name is not None:
            groups.setdefault((name.stem, name.mark), {})[name.kind] = entry
            names.setdefault((name.stem, name.mark), name)
    live = [
        names[key].base_offset
        for key, files in sorted(groups.items())
        if _is_live_name(names[key]) and LOG in files
    ]
    following = dict(pairwise(live))
    directory = _WholeDirectory(log, entries, live[-1] if live else None)
    found = []
    for key, files in sorted(groups.items()):
        name = names[key]
        next_base_offset = following.get(name.base_offset) if _is_live_name(name) else None
        status, reason = directory.status_of(name, files, next_base_offset)
        found.append(FoundSegment(name, files, status, reason, next_base_offset))
    given = log.given_files
    return [segment for segment in found if not given or segment.file.path in given]


def _is_live_name(name: SegmentFileName) -> bool:
    return not name.mark and name.stem.isdecimal()


class _WholeDirectory:
    """The whole directory, which decides the status of each segment."""

    def __init__(self, log: PartitionLog, entries: Sequence[Entry], active: int | None) -> None:
        names = {entry.name: entry for entry in entries}
        self._active = active
        self._log_start = log.log_start
        self._directory = _directory_status(log)
        self._dropped = set(dropped_files(names))
        self._swaps = [name for name in finished_swaps(names) if name.endswith(LOG + SWAP)]
        self._error: str | None = None
        try:
            self._covered = _covered_offsets([names[name] for name in self._swaps], names)
        except BrokerStartError as error:
            self._covered, self._error = None, str(error)

    def status_of(
        self, name: SegmentFileName, files: Mapping[str, Entry], next_base_offset: int | None
    ) -> tuple[SegmentStatus, str]:
        """Return the status of a segment and the reason."""
        status, reason = self._in_live_directory(name, files, next_base_offset)
        if self._directory is not None:
            return SegmentStatus.NOT_SERVED, f"{self._directory}; in it: {reason}"
        return status, reason

    def _in_live_directory(
        self, name: SegmentFileName, files: Mapping[str, Entry], next_base_offset: int | None
    ) -> tuple[SegmentStatus, str]:
        file = (files.get(LOG) or next(iter(files.values()))).name
        if file in self._dropped:
            return SegmentStatus.DROPPED, _WHY_DROPPED[name.mark]
        if name.mark == SWAP:
            if LOG not in files:
                return SegmentStatus.TAKES_OVER, "an index that was to be swapped in with its log"
            if self._error is not None:
                return SegmentStatus.TAKES_OVER, f"keeps a broker from starting: {self._error}"
            return SegmentStatus.TAKES_OVER, "cleaned: replaces all files it covers"
        if not name.stem.isdecimal():
            return (
                SegmentStatus.NOT_SERVED,
                "a name of tiered storage, which a broker does not load",
            )
        if self._covered is not None and is_replaced(file, *self._covered):
            first, end = self._covered
            by = ", ".join(self._swaps)
            return (
                SegmentStatus.REPLACED,
                f"deleted for {by}, which covers offsets {first} to {end - 1}",
            )
        if LOG not in files:
            return SegmentStatus.DROPPED, "an index without its log"
        if name.base_offset == self._active:
            return SegmentStatus.ACTIVE, "the last segment: the one a broker writes to"
        if next_base_offset is not None and next_base_offset <= self._log_start:
            return SegmentStatus.LIVE, (
                f"all of it is below the log start {self._log_start}: the next retention check "
                "deletes it"
            )
        return SegmentStatus.LIVE, "a segment that a broker serves"


_WHY_DROPPED = {
    DELETED: "removed by retention, the cleaner or a truncation; deleted after file.delete.delay",
    CLEANED: "a cleaning that was not finished",
    SWAP: "a cleaning that was not finished: there is a .cleaned file of this offset or before",
}


def _directory_status(log: PartitionLog) -> str | None:
    """Return why a broker serves nothing in the log's directory, None if it does."""
    name = partition_name(os.path.basename(log.path))
    if name is None:
        return "not in a directory named <topic>-<partition>"
    return MARKED_DIRECTORIES[name.mark] if name.mark else None


def _covered_offsets(swaps: Sequence[Entry], names: Mapping[str, Entry]) -> tuple[int, int] | None:
    """Return the offsets [first, end) of the swapped logs; None without any."""
    segments = []
    for log in swaps:
        base_offset = int(log.name[:20])
        index = names.get(log.name.replace(LOG, ".index"))
        entries: list[OffsetEntry] = []
        if index is not None:
            with suppress(CorruptDataError):
                entries = read_index_entries(read_bytes(index.path), base_offset)
        segments.append(LoadedSegment(base_offset, log.path, log.size, entries))
    if not segments:
        return None
    first = min(segment.base_offset for segment in segments)
    return first, max(segment.next_offset() for segment in segments)
