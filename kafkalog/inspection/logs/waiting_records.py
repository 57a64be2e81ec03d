"""What the next read of a log from an offset on would come upon: the first record, and what is
damaged or missing. Rule: docs/ingest.md F934.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.fault_details import (
    FaultyRange,
    faulty_range,
    missing_end,
    segment_hole,
)
from kafkalog.columns.batches.segment_batches import SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.format.faults import Severity
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.index_lookup import start_position
from kafkalog.storage.reading.log_bounds import recorded_end
from kafkalog.storage.reading.renamed_files import opened_segment


class WaitingFault(NamedTuple):
    """What is damaged or missing, and the file whose bytes it is, or after whose end."""

    path: str
    fault: FaultyRange

    def line(self) -> str:
        """Return a line that names file, position and offsets."""
        return self.fault.line(self.path)


def faults_from(
    log: PartitionLog, start_offset: int, *, is_compacted: bool, is_deep: bool
) -> Iterator[WaitingFault]:
    """Yield what is damaged or missing at `start_offset` and after it, by batch headers, or with
    checksums if `is_deep`. A torn tail of the last segment is not damage."""
    next_offset = start_offset
    for segment in log.segments:
        if segment.next_base_offset is not None and segment.next_base_offset <= start_offset:
            continue
        walk = _SegmentFaults(segment, start_offset, is_deep=is_deep)
        yield from walk.faults()
        next_offset = max(walk.next_offset, start_offset)
        hole = segment_hole(
            next_offset, segment.next_base_offset, segment.size, is_compacted=is_compacted
        )
        if hole is not None and hole.severity >= Severity.WARNING:
            yield WaitingFault(segment.path, hole)
    last = log.segments[-1] if log.segments else None
    lost = missing_end(next_offset, last.size if last else 0, recorded_end(log))
    if lost is not None and lost.severity >= Severity.ERROR:
        yield WaitingFault(last.path if last else log.path, lost)


class _SegmentFaults:
    """The damaged ranges of a segment from an offset on; `next_offset` is its end after them."""

    def __init__(self, segment: SegmentFile, start_offset: int, *, is_deep: bool) -> None:
        self._segment, self._start_offset, self._is_deep = segment, start_offset, is_deep
        self.next_offset = start_offset

    def faults(self) -> Iterator[WaitingFault]:
        """Yield the ranges."""
        segment = self._segment
        options = SegmentOptions.of(segment, first_offset=self._start_offset)
        walk_class = SegmentBatches if self._is_deep else SegmentHeaders
        with opened_segment(segment) as file:
            position = start_position(file.path, self._start_offset)
            window = FileWindow(file)
            walk = walk_class(window, replace(options, start_position=position))
            for chunk in walk.chunks():
                table = chunk.table
                is_faulty = (table[:, column.FAULT] != 0) & (
                    table[:, column.EXPECTED_OFFSET] >= self._start_offset
                )
                for row in table[is_faulty].tolist():
                    ends_file = row[column.POSITION] + row[column.SIZE] == window.size
                    ends_log = ends_file and segment.next_base_offset is None
                    fault = faulty_range(row, window.unreadable, ends_log=ends_log)
                    if fault.severity >= Severity.ERROR:
                        yield WaitingFault(file.path, fault)
            self.next_offset = walk.next_offset
