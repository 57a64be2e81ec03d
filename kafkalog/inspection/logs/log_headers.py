"""The batches of a whole log by their headers, segment after segment, and what damage hides of it.

A segment that turns out to be damaged has to be read whole: without checksums a wrong length can
hide more than is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets, is_wrapper
from kafkalog.columns.batches.damaged_offsets import DamagedOffsets
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.columns.records.single_batches import batch_records
from kafkalog.columns.records.sound_batches import checked_chunks
from kafkalog.columns.transactions.transaction_markers import offsets_of
from kafkalog.format.batch_header import V2_HEADER_BYTES
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.renamed_files import opened_segment

# How a log ends that is being written, or was when its broker stopped.
_AT_END = (Fault.TRUNCATED, Fault.ZEROS)


def is_damaged(table: LongArray, *, is_last: bool) -> BoolArray:
    """Return which rows have a fault, but for what a broker leaves at the end of a log's last
    segment."""
    faults = table[:, column.FAULT]
    damaged: BoolArray = faults != 0
    return damaged & ~np.isin(faults, _AT_END) if is_last else damaged


class SegmentTable(NamedTuple):
    """Batches of the segment with a number, which `file` is."""

    segment: int
    file: InputFile
    table: LongArray


class LogHeaders:
    """Walks the headers of a log, and all of the segments with the numbers in `read_whole`.

    Of the segments walked so far, `damaged` is what damage and missing files hide, and `doubtful`
    are those that have to be read whole.
    """

    def __init__(self, log: PartitionLog, read_whole: Collection[int] = ()) -> None:
        self._log = log
        self._read_whole = read_whole
        self._is_cleaned = log.topic_partition in log.log_dir.cleaner_checkpoints
        self.damaged = DamagedOffsets()
        self.doubtful: set[int] = set()

    def tables(
        self, numbers: Iterable[int], end_offset: int = LARGEST_OFFSET
    ) -> Iterator[SegmentTable]:
        """Yield the batches of the segments with these numbers, which rise, up to an offset."""
        for number in numbers:
            segment = self._log.segments[number]
            base_offset, next_base_offset = offsets_of(segment)
            if base_offset >= end_offset:
                return
            is_last = next_base_offset == LARGEST_OFFSET
            options = SegmentOptions(base_offset, segment.next_base_offset, end_offset=end_offset)
            with opened_segment(segment) as file:
                is_whole = number in self._read_whole
                window = FileWindow(file)
                batches: SegmentBatches | SegmentHeaders
                if is_whole:
                    batches = SegmentBatches(window, options)
                    chunks = checked_chunks(batches, options)
                else:
                    batches = SegmentHeaders(window, options)
                    chunks = batches.chunks()
                for chunk in chunks:
                    if not is_whole and self._is_odd(chunk, is_last=is_last):
                        self.doubtful.add(number)
                    yield SegmentTable(number, file, chunk.table)
                    # Now, for who walks may have set faults of its own.
                    self.damaged.note(chunk.table, self._first_offsets(file, chunk.table))
            self.damaged.end_at(next_base_offset)
            is_hole = is_last or not self._is_cleaned
            if is_hole and batches.next_offset < end_offset:
                self.damaged.add(batches.next_offset, next_base_offset)

    def _first_offsets(self, file: InputFile, table: LongArray) -> LongArray:
        """Return the first offset of each batch; after damage not the expected one of a wrapper."""
        firsts = first_offsets(table)
        is_faulty = table[:, column.FAULT] != 0
        is_behind = np.append(self.damaged.is_open, is_faulty)[:-1] & ~is_faulty
        for row in np.flatnonzero(is_behind & is_wrapper(table)).tolist():
            data = file.read(int(table[row, column.POSITION]), int(table[row, column.SIZE]))
            records = batch_records(data)
            if records is not None:
                firsts[row] = records.offsets[0]
        return firsts

    def _is_odd(self, chunk: Chunk, *, is_last: bool) -> bool:
        """Return whether something is damaged, or a batch cannot hold what its header promises, or
        should hold more."""
        table = chunk.table
        counts = table[:, column.RECORDS_COUNT]
        span = table[:, column.LAST_OFFSET] - first_offsets(table) + 1
        is_sound = table[:, column.FAULT] == 0
        is_false = is_sound & ((counts > span) | (counts < -1))
        table[is_false, column.FAULT] = Fault.RECORD_COUNT
        # Only the cleaner takes records away, and of what it has emptied a header is left.
        is_strange = is_sound & (counts >= 0) & (counts != span) & (not self._is_cleaned)
        is_strange |= is_sound & (counts == 0) & (table[:, column.SIZE] != V2_HEADER_BYTES)
        return bool((is_strange | is_damaged(table, is_last=is_last)).any())
