"""The markers that end a log's transactions, in their order. Rules: docs/format.md F210 to F213."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.damaged_offsets import DamagedOffsets
from kafkalog.columns.batches.segment_batches import SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import CONTROL_BIT, NO_VALUE, TRANSACTIONAL_BIT, V2_CHECKSUM_START
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan
from kafkalog.format.transaction_marker import ABORT, COMMIT, TransactionMarker, read_marker
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog, SegmentFile, segment_base_offsets
from kafkalog.storage.reading.index_lookup import start_position
from kafkalog.storage.reading.log_snapshots import snapshot_entries
from kafkalog.storage.reading.renamed_files import opened
from kafkalog.wire.checksums import crc32c


def is_transactional(table: LongArray, *, control: bool) -> BoolArray:
    """Return which rows are sound batches of a transaction: its data, or control batches."""
    wanted = TRANSACTIONAL_BIT | (CONTROL_BIT if control else 0)
    found: BoolArray = (
        (table[:, column.FAULT] == 0)
        & (table[:, column.MAGIC] == 2)
        & (table[:, column.PRODUCER_ID] > NO_VALUE)
        & (table[:, column.ATTRIBUTES] & (TRANSACTIONAL_BIT | CONTROL_BIT) == wanted)
    )
    return found


def marker_of(file: InputFile, row: list[int]) -> TransactionMarker | None:
    """Return the marker in a control batch, given its row of the batch table; None for another
    control record, and where the cleaner has emptied the batch, keeping it for its producer's sake.
    Raises CorruptDataError where the batch is not what was written."""
    if row[column.RECORDS_COUNT] == 0:
        return None
    data = file.read(row[column.POSITION], row[column.SIZE])
    if crc32c(memoryview(data)[V2_CHECKSUM_START:]) != row[column.CRC]:
        raise CorruptDataError("checksum", "of a control batch", position=row[column.POSITION])
    marker = read_marker(data)
    return marker if marker.type in (ABORT, COMMIT) else None


def offsets_of(segment: SegmentFile) -> OffsetSpan:
    """Return the offsets that can be in a segment, by the names of its file and the next."""
    return OffsetSpan(segment.base_offset or 0, segment.next_base_offset or LARGEST_OFFSET)


@dataclass(slots=True)
class _Ends:
    """The offsets of one producer's markers, and which of them are aborts."""

    offsets: list[int] = field(default_factory=list)
    aborts: list[bool] = field(default_factory=list)


class MarkerWalk:
    """The markers of a log from the segment on in which `requested` begins, read as far as needed,
    of transactions with batches in `requested`. What is not below `agreed_end` counts for nothing.

    `damages` is what damage may have hidden, `lost` what no file has, to the end of a log that ends
    below `end_offset`; both in order. `segments` are those walked so far.
    """

    def __init__(
        self,
        log: PartitionLog,
        requested: OffsetSpan,
        end_offset: int,
        agreed_end: int,
        *,
        check_crcs: bool,
    ) -> None:
        bases = segment_base_offsets(log.segments)
        self._log = log
        self._end_offset = end_offset
        self._agreed_end = agreed_end
        self._segments = log.segments[max(bisect_right(bases, requested.start) - 1, 0) :]
        self._walk_class = SegmentBatches if check_crcs else SegmentHeaders
        self._ends: dict[int, _Ends] = {}
        self._requested = requested
        # Of each producer the last requested batch of a transaction.
        self._last_offsets: dict[int, int] = {}
        self._steps = self._walked()
        self._damaged = DamagedOffsets()
        self.damages = self._damaged.spans
        self.lost: list[OffsetSpan] = []
        self.segments: list[SegmentFile] = []

    def look_for(self, last_offsets: Mapping[int, int]) -> None:
        """Read on until each producer has a marker after its offset, or the log ends."""
        wanted = self._without_end(last_offsets)
        while wanted and next(self._steps, None) is not None:
            wanted = self._without_end(wanted)

    def end_after(self, producer_id: int, offset: int) -> tuple[int, bool]:
        """Return the producer's next marker after an offset, LARGEST_OFFSET for none, and whether
        that is an abort's."""
        ends = self._ends.get(producer_id)
        number = bisect_right(ends.offsets, offset) if ends else 0
        if ends is None or number == len(ends.offsets):
            return LARGEST_OFFSET, False
        return ends.offsets[number], ends.aborts[number]

    def aborts_in(self, segment: SegmentFile) -> set[tuple[int, int]]:
        """Return the producers and offsets of the abort markers found in a segment."""
        start, end = offsets_of(segment)
        found = set()
        for producer_id, ends in self._ends.items():
            first, after = (bisect_left(ends.offsets, offset) for offset in (start, end))
            found |= {
                (producer_id, ends.offsets[number])
                for number in range(first, after)
                if ends.aborts[number]
            }
        return found

    def close(self) -> None:
        """Close the file that is being read."""
        self._steps.close()

    def _without_end(self, last_offsets: Mapping[int, int]) -> dict[int, int]:
        """Return those that have no marker so far."""
        return {
            producer_id: offset
            for producer_id, offset in last_offsets.items()
            if producer_id not in self._ends or self._ends[producer_id].offsets[-1] <= offset
        }

    def _walked(self) -> Generator[bool, None, None]:
        """True after each piece that was read."""
        next_offset = self._requested.start
        for segment in self._segments:
            base_offset, segment_end = offsets_of(segment)
            if base_offset >= self._agreed_end:
                break
            self.segments.append(segment)
            self._note_gap(next_offset, base_offset)
            next_offset = segment_end
            if base_offset >= self._requested.end and self._has_no_end(segment):
                continue
            try:
                file = opened(segment.path)
            except FileNotFoundError:
                self.lost.append(OffsetSpan(base_offset, next_offset))
                continue
            with file:
                batches = self._walk_class(FileWindow(file), self._options(file, segment))
                for chunk in batches.chunks():
                    self._note(file, chunk.table)
                    yield True
            next_offset = batches.next_offset
        next_offset = min(next_offset, self._agreed_end)
        if next_offset < self._end_offset:
            self.lost.append(OffsetSpan(next_offset, LARGEST_OFFSET))

    def _options(self, file: InputFile, segment: SegmentFile) -> SegmentOptions:
        """Return what is requested of a segment: all of it or, of the first, what is requested and
        after it."""
        options = SegmentOptions.of(segment, first_offset=self._requested.start)
        return replace(options, start_position=start_position(file.path, self._requested.start))

    def _note_gap(self, start: int, end: int) -> None:
        # Between segments, cleaning leaves gaps; a log that begins after what is requested has one.
        is_cleaned = self._log.topic_partition in self._log.log_dir.cleaner_checkpoints
        if start < end and (len(self.segments) == 1 or not is_cleaned):
            self.lost.append(OffsetSpan(start, end))

    def _has_no_end(self, segment: SegmentFile) -> bool:
        """Return whether the producers' state after a segment says that all transactions of
        requested batches that have no marker so far were still open then (F213). Which those are
        damage may hide."""
        if segment.next_base_offset is None or self.damages or self.lost:
            return False
        entries = snapshot_entries(self._log, segment.next_base_offset)
        open_since = {
            entry.producer_id: entry.transaction_first_offset
            for entry in entries or ()
            if entry.transaction_first_offset != NO_VALUE
        }
        return all(
            open_since.get(producer_id, LARGEST_OFFSET) <= offset
            for producer_id, offset in self._without_end(self._last_offsets).items()
        )

    def _note(self, file: InputFile, table: LongArray) -> None:
        for number in np.flatnonzero(is_transactional(table, control=True)).tolist():
            row = table[number].tolist()
            try:
                marker = marker_of(file, row)
            except CorruptDataError:
                table[number, column.FAULT] = Fault.RECORDS
                continue
            if marker is not None and row[column.BASE_OFFSET] < self._agreed_end:
                ends = self._ends.setdefault(row[column.PRODUCER_ID], _Ends())
                ends.offsets.append(row[column.BASE_OFFSET])
                ends.aborts.append(marker.type == ABORT)
        data = table[
            is_transactional(table, control=False)
            & (table[:, column.BASE_OFFSET] < self._requested.end)
        ]
        self._last_offsets.update(
            zip(
                data[:, column.PRODUCER_ID].tolist(),
                data[:, column.LAST_OFFSET].tolist(),
                strict=True,
            )
        )
        self._damaged.note(table)
