"""Whole segments: a log file and its indexes, as a broker writes and accepts them.

Rules: docs/format.md F100 to F102.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkalog.format.batch_header import NO_VALUE, read_header
from kafkalog.format.side_files.indexes import (
    OffsetEntry,
    TimeEntry,
    write_offset_index,
    write_time_index,
)

INDEX_INTERVAL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The contents of a segment's files."""

    base_offset: int
    log: bytes
    index: bytes
    timeindex: bytes

    @property
    def by_name(self) -> dict[str, bytes]:
        """The contents by the names that the files have."""
        stem = f"{self.base_offset:020d}"
        return {
            f"{stem}.log": self.log,
            f"{stem}.index": self.index,
            f"{stem}.timeindex": self.timeindex,
        }


def write_segment(
    batches: Sequence[bytes], base_offset: int, *, index_interval_bytes: int = INDEX_INTERVAL_BYTES
) -> SegmentFiles:
    """Return a segment of the given batches, each as its own bytes, in the order of their offsets.

    An index entry is written for a batch when more than `index_interval_bytes` lie between it and
    the last that has one; the time index ends with the largest timestamp of all.
    """
    offsets: list[OffsetEntry] = []
    times: list[TimeEntry] = []
    latest = TimeEntry(NO_VALUE, base_offset)
    position = since_last_entry = 0
    for batch in batches:
        header = read_header(batch, 0)
        if header.max_timestamp_ms > latest.timestamp_ms:
            latest = TimeEntry(header.max_timestamp_ms, header.last_offset)
        if since_last_entry > index_interval_bytes:
            offsets.append(OffsetEntry(header.last_offset, position))
            _add_if_later(times, latest)
            since_last_entry = 0
        position += len(batch)
        since_last_entry += len(batch)
    _add_if_later(times, latest)
    return SegmentFiles(
        base_offset=base_offset,
        log=b"".join(batches),
        index=write_offset_index(offsets, base_offset),
        timeindex=write_time_index(times, base_offset),
    )


def _add_if_later(times: list[TimeEntry], latest: TimeEntry) -> None:
    if latest.timestamp_ms > (times[-1].timestamp_ms if times else NO_VALUE):
        times.append(latest)
