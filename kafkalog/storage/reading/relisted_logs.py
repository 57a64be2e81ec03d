"""Reading a log of a running broker as it is: if a segment is deleted meanwhile, its segments are
listed again, and it is read from there. Rule: docs/format.md F951."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.storage.files.files import is_directory, list_directory
from kafkalog.storage.files.unreadable_input import note_deleted
from kafkalog.storage.log_dir.log_dir import with_segments_of_now
from kafkalog.storage.names import any_base_offset, is_marked
from kafkalog.storage.partition_log import PartitionLog, segment_base_offsets
from kafkalog.storage.reading.renamed_files import (
    ListedSegment,
    deletions_raised,
    note_deleted_segment,
)

# How often a log is listed whose segments are deleted while it is read.
_MOST_TRIES = 5
_Result = TypeVar("_Result")


def read_relisted(log: PartitionLog, read: Callable[[PartitionLog], _Result]) -> _Result | None:
    """Return what `read` makes of a log. If a segment is deleted meanwhile, remember it, list the
    segments again, and return what `read` makes of those.

    Return None if its directory was deleted with its topic. Raises FileNotFoundError where segments
    are deleted faster than they can be read.
    """
    for tries_left in reversed(range(_MOST_TRIES)):
        if not (log.segments or is_directory(log.path)):
            break
        try:
            with deletions_raised():
                return read(log)
        except FileNotFoundError:
            if not tries_left:
                raise
            before, log = log, with_segments_of_now(log)
            _note_deletions(before, log)
    return None


def begins_after(segment: ListedSegment) -> bool:
    """Return whether the log of a deleted segment begins after it now, as retention leaves it, or
    was deleted as a whole. Otherwise the file is missing for another reason, and may come back."""
    try:
        entries = list_directory(os.path.dirname(segment.path))
    except FileNotFoundError:
        return True
    bases = [
        base_offset
        for entry in entries
        if not is_marked(entry.name) and (base_offset := any_base_offset(entry.name)) is not None
    ]
    end = LARGEST_OFFSET if segment.next_base_offset is None else segment.next_base_offset
    return bool(bases) and min(bases) >= end


def _note_deletions(before: PartitionLog, now: PartitionLog) -> None:
    """Remember which segments of a log were deleted between two listings, or that all of it was."""
    if not is_directory(now.path):
        note_deleted(now.path)
        return
    left = set(segment_base_offsets(now.segments))
    for segment in before.segments:
        if segment.base_offset not in left:
            note_deleted_segment(segment)
