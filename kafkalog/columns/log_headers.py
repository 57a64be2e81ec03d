"""The batch headers of a whole log, segment after segment, and what no file of it has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from kafkalog.columns.batch_table import (
    FAULT,
    LAST_OFFSET,
    POSITION,
    RECORDS_COUNT,
    first_offsets,
)
from kafkalog.columns.compiled import LongArray
from kafkalog.columns.damaged_offsets import DamagedOffsets
from kafkalog.columns.segment_batches import SegmentHeaders, SegmentOptions
from kafkalog.columns.transaction_markers import offsets_of
from kafkalog.columns.window import FileWindow
from kafkalog.format.faults import Fault
from kafkalog.format.segment import LARGEST_OFFSET
from kafkalog.storage.files import InputFile
from kafkalog.storage.log_dir import PartitionLog
from kafkalog.storage.renamed_files import opened


class BatchPlace(NamedTuple):
    """A batch by the number of its segment in the log and its position there."""

    segment: int
    position: int


class HeaderTable(NamedTuple):
    """Batches of the segment with a number, which `file` is."""

    segment: int
    file: InputFile
    table: LongArray


class LogHeaders:
    """Walks the headers of a log, where the batches `unreadable` are known to be damaged.

    `damaged` is what damage and missing files hide of the segments walked so far.
    """

    def __init__(self, log: PartitionLog, unreadable: Collection[BatchPlace] = ()) -> None:
        self._log = log
        self._unreadable = unreadable
        self._is_cleaned = log.topic_partition in log.log_dir.cleaner_checkpoints
        self.damaged = DamagedOffsets()

    def tables(
        self, numbers: Iterable[int], end_offset: int = LARGEST_OFFSET
    ) -> Iterator[HeaderTable]:
        """The batches of the segments with these numbers, which rise, up to an offset."""
        for number in numbers:
            segment = self._log.segments[number]
            base_offset, follower = offsets_of(segment)
            if base_offset >= end_offset:
                return
            options = SegmentOptions(base_offset, segment.next_base_offset, end_offset=end_offset)
            with opened(segment.path) as file:
                headers = SegmentHeaders(FileWindow(file), options)
                for chunk in headers.chunks():
                    self._mark(number, chunk.table)
                    yield HeaderTable(number, file, chunk.table)
                    # Now, for who walks may have set faults of its own.
                    self.damaged.note(chunk.table)
            self.damaged.end_at(follower)
            is_hole = follower == LARGEST_OFFSET or not self._is_cleaned
            if is_hole and headers.next_offset < end_offset:
                self.damaged.add(headers.next_offset, follower)

    def _mark(self, number: int, table: LongArray) -> None:
        """Mark the batches that cannot be read, and those that cannot hold what they promise."""
        counts = table[:, RECORDS_COUNT]
        span = table[:, LAST_OFFSET] - first_offsets(table) + 1
        odd = (table[:, FAULT] == 0) & ((counts > span) | (counts < -1))
        table[odd, FAULT] = Fault.RECORD_COUNT
        places = {place.position for place in self._unreadable if place.segment == number}
        if places:
            is_known = np.isin(table[:, POSITION], list(places)) & (table[:, FAULT] == 0)
            table[is_known, FAULT] = Fault.RECORDS
