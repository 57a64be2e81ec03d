"""The facts that retention uses, from a log's files. Rule: docs/format.md F162."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.indexes import TIME_ENTRY, read_time_index, whole_entries
from kafkalog.storage.files.files import modified_ms, read_bytes
from kafkalog.storage.partition_log import SegmentFile


class TimestampFrom(Enum):
    """Where a segment's largest timestamp comes from."""

    TIME_INDEX = "timeindex"
    FILE = "mtime"
    BATCHES = "batches"


@dataclass(frozen=True, slots=True)
class LargestTimestamp:
    """The time that a segment's age is counted from."""

    timestamp_ms: int
    source: TimestampFrom


def largest_timestamp(segment: SegmentFile) -> LargestTimestamp:
    """Return the time of the last entry of the segment's time index or, without one, when the log
    file was last written."""
    index_path = segment.path.removesuffix(".log") + ".timeindex"
    with suppress(FileNotFoundError, CorruptDataError):
        whole = whole_entries(read_bytes(index_path), TIME_ENTRY)
        entries = read_time_index(whole, segment.base_offset or 0).entries
        if entries and entries[-1].timestamp_ms >= 0:
            return LargestTimestamp(entries[-1].timestamp_ms, TimestampFrom.TIME_INDEX)
    return LargestTimestamp(modified_ms(segment.path), TimestampFrom.FILE)
