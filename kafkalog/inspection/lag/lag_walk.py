"""What a question of lag reads of a log: headers between offsets, and the few batches to decode."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

import numpy as np

from kafkalog.columns.batches.batch_table import new_table
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.single_batches import BatchRecords
from kafkalog.columns.transactions.transaction_outcomes import (
    TransactionOutcomes,
    transaction_outcomes,
)
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan
from kafkalog.inspection.lag.decoded_batches import DecodedBatches, LagWork
from kafkalog.inspection.lag.offset_intervals import (
    BATCH_COLUMNS,
    BATCH_POSITION,
    IS_DECODED,
    PIECE_COUNT,
    SEGMENT,
    OffsetIntervals,
    set_records,
)
from kafkalog.inspection.logs.log_headers import LogHeaders, SegmentTable
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.renamed_files import opened_segment

_NO_ROWS = new_table(0)


class LagWalk:
    """Walks a log, reading the segments with the numbers in `read_whole` as a whole. Answers can be
    wrong as long as other segments turn out to be `doubtful`."""

    def __init__(
        self, log: PartitionLog, read_whole: frozenset[int], work: LagWork, now_ms: int
    ) -> None:
        self.log = log
        self.work = work
        self.now_ms = now_ms
        self.doubtful: set[int] = set()
        self._read_whole = read_whole
        self._bases = [segment.base_offset or 0 for segment in log.segments]
        self._damaged: list[OffsetSpan] = []
        self._decoded = DecodedBatches(work)

    @property
    def ends_in_damage(self) -> bool:
        """Whether the last segment is one of those that are read as a whole."""
        return len(self._bases) - 1 in self._read_whole

    def tables(self, start_offset: int, end_offset: int) -> Generator[SegmentTable, None, None]:
        """Yield the batches from the segment on that holds an offset."""
        numbers = range(self._segment_of(start_offset), len(self._bases))
        yield from self._walked(LogHeaders(self.log, self._read_whole), numbers, end_offset)

    def decode(self, headers: SegmentTable, rows: LongArray) -> list[BatchRecords | None]:
        """Return the records of batches of the table's file, None for one that cannot be decoded.
        `rows` rise, and have position, size and last offset."""
        found = self._decoded.records(headers, rows)
        if None in found:
            self._doubt({headers.segment})
        return found

    def intervals(
        self, log_start: int, wanted: Sequence[LongArray], committed_end: int | None
    ) -> OffsetIntervals:
        """Return what lies between the log start and all given offsets; before the first of these,
        at least the last readable record. With `committed_end`, the end of finished transactions,
        records of aborted transactions are not readable."""
        offsets = np.concatenate(wanted)
        intervals = OffsetIntervals(np.unique(np.append(offsets, log_start)), self.decode)
        if not len(offsets) or not self._bases:
            return intervals
        counted = OffsetSpan(max(int(offsets.min()), log_start), int(offsets.max()))
        first = self._segment_of(counted.start)
        numbers = range(first, len(self._bases))
        self._damaged = self._walk(numbers, counted, intervals, counted, committed_end)
        # What was consumed last may lie in segments before.
        begin, end = (
            np.searchsorted(intervals.boundaries, offset, side="right")
            for offset in (log_start, counted.start)
        )
        for number in reversed(range(self._segment_of(log_start), first)):
            if intervals.first[begin:end, PIECE_COUNT].any():
                break
            span = OffsetSpan(self._bases[number], self._bases[number + 1])
            self._damaged[:0] = self._walk([number], span, intervals, counted, committed_end)
        return intervals

    def damaged_between(self, starts: LongArray, ends: LongArray) -> LongArray:
        """Return how many offsets of each [start, end) damage hides."""
        hidden = np.zeros(len(starts), dtype=np.int64)
        for span in self._damaged:
            hidden += np.maximum(np.minimum(ends, span.end) - np.maximum(starts, span.start), 0)
        return hidden

    def decode_pieces(
        self, intervals: OffsetIntervals, next_pieces: LongArray, last_pieces: LongArray
    ) -> None:
        """Decode, each once, the batches that hold the first pieces of some intervals and the last
        pieces of others. Negative numbers mean no interval."""
        wanted = [
            (table, number)
            for table, numbers in ((intervals.first, next_pieces), (intervals.last, last_pieces))
            for number in np.unique(numbers[numbers >= 0]).tolist()
            if not table[number, IS_DECODED]
        ]
        by_place = sorted(
            (table[number] for table, number in wanted),
            key=lambda piece: (piece[SEGMENT], piece[BATCH_POSITION]),
        )
        for segment, pieces in groupby(by_place, key=lambda piece: int(piece[SEGMENT])):
            with opened_segment(self.log.segments[segment]) as file:
                self._decode_in(SegmentTable(segment, file, _NO_ROWS), pieces)

    def _decode_in(self, headers: SegmentTable, pieces: Iterable[LongArray]) -> None:
        of_batches = [[*same] for _, same in groupby(pieces, key=lambda each: each[BATCH_POSITION])]
        rows = np.array([some[0][BATCH_COLUMNS] for some in of_batches])
        for some, records in zip(of_batches, self.decode(headers, rows), strict=True):
            if records is not None:
                for piece in some:
                    set_records(piece, records, 0, -1)

    def _segment_of(self, offset: int) -> int:
        return max(bisect_right(self._bases, offset) - 1, 0)

    def _walked(
        self, walk: LogHeaders, numbers: Iterable[int], end_offset: int
    ) -> Generator[SegmentTable, None, None]:
        for headers in walk.tables(numbers, end_offset):
            self.work.headers += len(headers.table)
            self._doubt(walk.doubtful)
            yield headers

    def _doubt(self, segments: set[int]) -> None:
        self.doubtful |= segments - self._read_whole

    def _walk(
        self,
        numbers: Iterable[int],
        wanted: OffsetSpan,
        intervals: OffsetIntervals,
        counted: OffsetSpan,
        committed_end: int | None,
    ) -> list[OffsetSpan]:
        """Add the batches of some segments, and return the offsets that damage hides there."""
        walk = LogHeaders(self.log, self._read_whole)
        with self._outcomes(wanted, committed_end) as outcomes:
            for headers in self._walked(walk, numbers, wanted.end):
                table = headers.table
                is_aborted = np.zeros(len(table), dtype=np.bool_)
                if outcomes is not None and committed_end is not None:
                    is_aborted = outcomes.is_aborted(table, 0, committed_end)
                intervals.add(headers, is_aborted, counted)
        return walk.damaged.spans

    @contextmanager
    def _outcomes(
        self, wanted: OffsetSpan, committed_end: int | None
    ) -> Iterator[TransactionOutcomes | None]:
        if committed_end is None:
            yield None
            return
        logs = [(self.log, LARGEST_OFFSET)]
        with transaction_outcomes(logs, wanted, committed_end, check_crcs=False) as outcomes:
            yield outcomes
