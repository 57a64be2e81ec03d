"""The facts that retention uses, from a log's files. Rules: docs/format.md F162 and F941."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.indexes import TIME_ENTRY, whole_entries
from kafkalog.storage.files.files import list_directory, modified_ms, read_bytes
from kafkalog.storage.partition_log import PartitionLog, SegmentFile


class TimestampFrom(Enum):
    """Where a segment's largest timestamp comes from. ZEROS is a time index that ends with zeros,
    which a broker reads as an entry of 1970."""

    TIME_INDEX = "timeindex"
    ZEROS = "timeindex_zeros"
    FILE = "mtime"
    BATCHES = "batches"


@dataclass(frozen=True, slots=True)
class LargestTimestamp:
    """The time that a segment's age is counted from."""

    timestamp_ms: int
    source: TimestampFrom


def largest_timestamp(segment: SegmentFile) -> LargestTimestamp:
    """Return the time of the last entry of the segment's time index or, without one, when the log
    file was last written. As a broker does, it takes zeros at the end for an entry (F941)."""
    index_path = segment.path.removesuffix(".log") + ".timeindex"
    with suppress(FileNotFoundError, CorruptDataError):
        entries = whole_entries(read_bytes(index_path), TIME_ENTRY)
        last = entries[-TIME_ENTRY.size :]
        timestamp_ms = TIME_ENTRY.unpack(last)[0] if last else -1
        if timestamp_ms >= 0:
            # A single entry can be of a record of 1970.
            is_padding = not any(last) and len(entries) > TIME_ENTRY.size
            source = TimestampFrom.ZEROS if is_padding else TimestampFrom.TIME_INDEX
            return LargestTimestamp(timestamp_ms, source)
    return LargestTimestamp(modified_ms(segment.path), TimestampFrom.FILE)


def rebuilt_segments(log: PartitionLog) -> list[int]:
    """Return the numbers of the segments whose indexes a broker recreates when it starts: those
    that it recovers, which reach beyond the recovery point, and those without an offset index
    (F121). Raises OSError."""
    names = {entry.path for entry in list_directory(log.path)}

    def is_rebuilt(segment: SegmentFile) -> bool:
        end = segment.next_base_offset
        is_recovered = log.is_recovered_at_start and (end is None or end > log.recovery_point)
        return is_recovered or segment.path.removesuffix(".log") + ".index" not in names

    return [number for number, segment in enumerate(log.segments) if is_rebuilt(segment)]
