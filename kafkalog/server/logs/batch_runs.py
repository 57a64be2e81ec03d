"""Where the sound batches of a segment lie, in runs that a fetch can hand out as they are.

A run is some sound batches that follow each other in a file. What is damaged is in none; where
other replicas have it, a run leads to their files.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from threading import Lock

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import first_offsets
from kafkalog.columns.batches.fault_details import FaultyRange, faulty_range
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.filled_records import FilledRows
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.format.batch_header import TRANSACTIONAL_BIT
from kafkalog.format.faults import Severity
from kafkalog.format.offsets import OffsetSpan
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.reading.replica_reads import Filling, OtherSegment
from kafkalog.storage.recovery.framing import Frame, frames

# A run ends with the batch that reaches the next multiple of this position in its file.
RUN_BYTES = 64 * 1024
# A segment of no more bytes is looked through at once.
SMALL_BYTES = 16 * 1024 * 1024

OnFault = Callable[[str, FaultyRange], None]
OnFilled = Callable[[str, OffsetSpan, str], None]


@dataclass(frozen=True, slots=True)
class Run:
    """Sound batches at [position, end) of a file, with these offsets, both included. They are all
    of formats 0 and 1 if `is_old`, otherwise all of format 2."""

    path: str
    position: int
    end: int
    first_offset: int
    last_offset: int
    is_old: bool

    def frames(self, file: InputFile, span: OffsetSpan) -> Iterator[Frame]:
        """Yield where the batches lie that end in a span. `file` is the run's own."""
        for frame in frames(file, self.position, self.end):
            if frame.header.last_offset >= span.end:
                return
            if frame.header.last_offset >= span.start:
                yield frame


@dataclass(frozen=True, slots=True)
class _Piece:
    """Runs as rows of position, end, first and last offset and age, and the rows of the batch table
    that belong to transactions."""

    path: str
    runs: LongArray
    transactional: LongArray


class BatchRuns:
    """The runs of one segment, found as far as they are needed. Who reads its partition uses them;
    any thread may close them.

    `filling` is what the other replicas have, None where there is no other. With `is_deep`, records
    are read: a batch whose checksum is right and whose records are not is damage too.
    """

    def __init__(
        self,
        segment: SegmentFile,
        filling: Filling | None,
        on_fault: OnFault,
        on_filled: OnFilled,
        *,
        is_deep: bool,
    ) -> None:
        self._segment = segment
        self._on_fault = on_fault
        self._on_filled = on_filled
        self._is_deep = is_deep
        # A segment in tiered storage may go on with offsets that count in the next one only.
        cut = segment.next_base_offset if segment.is_cut else None
        self._options = SegmentOptions.of(segment)
        if cut is not None:
            self._options = SegmentOptions(segment.base_offset, None, end_offset=cut)
        self._filling = filling
        self._pieces: Generator[_Piece, None, None] | None = None
        self._runs: list[Run] = []
        self._transactional: list[LongArray] = []
        self._is_complete = False
        self._in_use = Lock()
        if filling is not None:
            # What other replicas fill comes after all that is the segment's own.
            self._take_all()
            self._runs.sort(key=attrgetter("first_offset"))
        elif segment.size <= SMALL_BYTES:
            # Not to keep a file open, and what was read of it in memory.
            self._take_all()

    def __len__(self) -> int:
        return len(self._runs)

    def from_offset(self, offset: int) -> Iterator[Run]:
        """Yield the runs from the one on that has the offset, or the next one there is."""
        number = self._number(offset)
        while True:
            while number < len(self._runs):
                yield self._runs[number]
                number += 1
            if not self._take():
                return

    def last_offset(self) -> int | None:
        """Return the last offset of all runs, None if there is none."""
        self._take_all()
        return max((run.last_offset for run in self._runs), default=None)

    def transactional(self) -> LongArray:
        """Return the rows of the batch table of all batches that belong to transactions, in
        the order of their offsets."""
        self._take_all()
        found = [table for table in self._transactional if len(table)]
        if not found:
            return np.zeros((0, column.WIDTH), dtype=np.int64)
        rows = np.concatenate(found)
        ordered: LongArray = rows[np.argsort(rows[:, column.BASE_OFFSET], kind="stable")]
        return ordered

    @property
    def is_open(self) -> bool:
        """Whether a file is open, and some of it in memory."""
        return self._pieces is not None

    def close(self) -> None:
        """Close what is open, unless it is being read; what was found stays, and who needs more
        opens the file again."""
        if not self._in_use.acquire(blocking=False):
            return
        try:
            if self._pieces is not None:
                self._pieces.close()
                self._pieces = None
        finally:
            self._in_use.release()

    def _number(self, offset: int) -> int:
        """Return the number of the first run that ends at the offset or after it, having looked as
        far as it takes."""
        while (not self._runs or self._runs[-1].last_offset < offset) and self._take():
            pass
        low, high = 0, len(self._runs)
        while low < high:
            middle = (low + high) // 2
            if self._runs[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _take_all(self) -> None:
        while self._take():
            pass

    def _take(self) -> bool:
        """Look at the next piece of the file; False at its end."""
        with self._in_use:
            return self._take_piece()

    def _take_piece(self) -> bool:
        if self._is_complete:
            return False
        if self._pieces is None:
            self._pieces = self._own() if self._filling is None else self._filled(self._filling)
        try:
            piece = next(self._pieces, None)
        except BaseException:
            self._pieces = None
            raise
        if piece is None:
            self._is_complete, self._pieces = True, None
            return False
        self._runs += [Run(piece.path, *row) for row in piece.runs.tolist()]
        self._transactional.append(piece.transactional)
        return True

    def _own(self) -> Generator[_Piece, None, None]:
        """Yield the pieces of the segment itself, after those that were found before."""
        options = self._options
        if self._runs:
            last = self._runs[-1]
            options = replace(
                options, first_offset=last.last_offset + 1, start_position=last.position
            )
        with opened_segment(self._segment) as file:
            rows = _Rows(file.path, options, is_deep=self._is_deep)
            for chunk in SegmentBatches(FileWindow(file), options).chunks():
                pieces = list(rows.batches(chunk))
                # First: who takes a piece may close this.
                self._report(file, chunk.table)
                yield from pieces

    def _report(self, file: InputFile, table: LongArray) -> None:
        for row in table[table[:, column.FAULT] != 0].tolist():
            reaches_end = row[column.POSITION] + row[column.SIZE] == file.size
            ends_log = reaches_end and self._segment.next_base_offset is None
            self._note(file.path, faulty_range(row, file.unreadable, ends_log=ends_log))

    def _note(self, path: str, fault: FaultyRange) -> None:
        if fault.severity >= Severity.ERROR:
            self._on_fault(path, fault)

    def _filled(self, filling: Filling) -> Generator[_Piece, None, None]:
        self._runs.clear()
        self._transactional.clear()
        with opened_segment(self._segment) as file:
            path = file.path

            def rows(options: SegmentOptions, source: tuple[str, OtherSegment] | None) -> _Rows:
                return _Rows(path if source is None else source[0], options, is_deep=self._is_deep)

            yield from FilledRows(
                FileWindow(file),
                self._options,
                rows,
                filling,
                lambda fault: self._note(path, fault),
                lambda span, other: self._on_filled(path, span, other),
            ).rows()


class _Rows:
    """Makes pieces of chunks."""

    def __init__(self, path: str, options: SegmentOptions, *, is_deep: bool) -> None:
        self._path = path
        self._first_offset, self._end_offset = options.first_offset, options.end_offset
        self._records = (
            RecordColumns(options, (), {}, with_control_records=True) if is_deep else None
        )

    def limit(self, first_offset: int, end_offset: int) -> None:
        """Make rows only of batches with these offsets from now on."""
        self._first_offset, self._end_offset = first_offset, end_offset
        if self._records is not None:
            self._records.limit(first_offset, end_offset)

    def batches(self, chunk: Chunk) -> Iterator[_Piece]:
        """Yield the sound batches with requested offsets, if there are any."""
        if self._records is not None:
            self._records.check(chunk)
        table = chunk.table
        firsts = first_offsets(table)
        is_sound = (
            (table[:, column.FAULT] == 0)
            & (table[:, column.LAST_OFFSET] >= self._first_offset)
            & (firsts < self._end_offset)
        )
        sound = table[is_sound]
        if len(sound):
            is_transactional = (sound[:, column.MAGIC] == 2) & (
                sound[:, column.ATTRIBUTES] & TRANSACTIONAL_BIT != 0
            )
            yield _Piece(
                self._path, _run_rows(sound, firsts[is_sound]), sound[is_transactional].copy()
            )


def _run_rows(sound: LongArray, firsts: LongArray) -> LongArray:
    """Return rows of position, end, first and last offset, and 1 for old formats, for runs of sound
    batches."""
    is_old = sound[:, column.MAGIC] < 2
    positions, lasts = sound[:, column.POSITION], sound[:, column.LAST_OFFSET]
    ends = positions + sound[:, column.SIZE]
    begins_run = np.ones(len(sound), dtype=np.bool_)
    begins_run[1:] = (
        (positions[1:] != ends[:-1])
        | (positions[1:] // RUN_BYTES != positions[:-1] // RUN_BYTES)
        | (firsts[1:] <= lasts[:-1])
        | (is_old[1:] != is_old[:-1])
    )
    starts = np.flatnonzero(begins_run)
    stops = np.append(starts[1:], len(sound)) - 1
    rows: LongArray = np.column_stack(
        (positions[starts], ends[stops], firsts[starts], lasts[stops], is_old[starts])
    )
    return rows
