"""Up to which offset so many bytes of a log go, by batch headers. Rule: docs/ingest.md F526."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.inspection.logs.log_tails import FileRest
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.renamed_files import opened


class ByteLimits:
    """Remembers of each log where an offset lies, for the next walk begins where one has ended."""

    def __init__(self) -> None:
        self._places: dict[str, dict[int, tuple[str, int]]] = {}

    def bytes_from(self, log: PartitionLog, start_offset: int) -> int:
        """Return how many bytes of segments are left from an offset on, the segment that it is in
        counted whole where its place is not known."""
        path, position = self._place(log, start_offset)
        return sum(
            segment.size - (position if segment.path == path else 0)
            for segment in _from(log, start_offset)
        )

    def end_offset(self, log: PartitionLog, start_offset: int, end_offset: int, size: int) -> int:
        """Return the end, `end_offset` at most, of the batches from `start_offset` on that have
        `size` bytes or less; a batch at least."""
        taken, end = 0, start_offset
        for segment in _from(log, start_offset):
            position = 0
            for position, rows in self._rows(log, segment, start_offset, end_offset):
                sums = taken + np.cumsum(rows[:, column.SIZE])
                fitting = int(np.searchsorted(sums, size, side="right"))
                if taken == 0:
                    fitting = max(fitting, 1)
                if fitting < len(rows):
                    if fitting:
                        end = int(rows[fitting - 1, column.LAST_OFFSET]) + 1
                    place = segment.path, position + int(rows[fitting, column.POSITION])
                    self._places[log.path] = {min(end, end_offset): place}
                    return min(end, end_offset)
                taken, end = int(sums[-1]), int(rows[-1, column.LAST_OFFSET]) + 1
            if end >= end_offset:
                break
        return end_offset

    def _place(self, log: PartitionLog, offset: int) -> tuple[str, int]:
        return self._places.get(log.path, {}).get(offset, ("", 0))

    def _rows(
        self, log: PartitionLog, segment: SegmentFile, start_offset: int, end_offset: int
    ) -> Iterator[tuple[int, LongArray]]:
        """Yield sound batches that hold offsets in question, and what their positions are to be
        added to."""
        path, start = self._place(log, start_offset)
        start = start if path == segment.path else 0
        base_offset = start_offset if start else segment.base_offset
        options = SegmentOptions(base_offset, segment.next_base_offset, end_offset=end_offset)
        try:
            with opened(segment.path) as file:
                if start > file.size:
                    start, options = 0, SegmentOptions.of(segment)
                for chunk in SegmentHeaders(FileWindow(FileRest(file, start)), options).chunks():
                    table = chunk.table
                    is_requested = (table[:, column.FAULT] == 0) & (
                        table[:, column.LAST_OFFSET] >= start_offset
                    )
                    if is_requested.any():
                        yield start, table[is_requested]
        except FileNotFoundError:
            return


def _from(log: PartitionLog, offset: int) -> list[SegmentFile]:
    return [
        segment
        for segment in log.segments
        if segment.next_base_offset is None or segment.next_base_offset > offset
    ]
