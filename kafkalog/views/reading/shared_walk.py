"""One walk over a segment for several views of it: each byte is read, and each payload
decompressed, once. The rows of each view are those of a walk of its own.

Several processes can divide a segment, if it turns out that nothing in it is odd: then its account
is one run of sound batches, and so is that of each part. Rule: docs/report.md F1323.

A view goes along only where it would read the whole segment as it lies in its file: no part of it,
nothing that other replicas fill in, and no outcomes of transactions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.byte_ranges import ByteRange, ByteRanges, SegmentFacts
from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.batch_columns import CHECKSUM_COLUMNS, DEEP_COLUMNS, BatchColumns
from kafkalog.columns.records.record_columns import PAYLOAD_COLUMNS, RecordColumns
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.columns.table_rows import table_batch
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.names import oldest_base_offset
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.storage.reading.renamed_files import opened
from kafkalog.views.options.options import ReadOptions, View
from kafkalog.views.reading.reading import ROWS_PER_BATCH, ViewRead, read_segment
from kafkalog.views.reading.segment_damage import SegmentDamage, report_missing_end

# Rows of a view with its number.
_Numbered = tuple[int, pa.RecordBatch]


class WantedView(NamedTuple):
    """A view that goes along a walk: the source's options for it, and its columns."""

    options: ReadOptions
    columns: tuple[str, ...]

    @property
    def can_share(self) -> bool:
        """Whether a walk that decodes every record has all that the view needs."""
        view, columns = self.options.view, set(self.columns)
        if view is View.BATCHES:
            return bool(DEEP_COLUMNS & columns)
        if view is View.RECORDS:
            # Others are taken from headers, also where the records are damaged.
            return bool(PAYLOAD_COLUMNS & columns) and self.options.timestamps is None
        return view is View.BYTE_RANGES

    @property
    def has_headers_alone(self) -> bool:
        """Whether the view is of batches, and no payload is read for it."""
        of_payloads = DEEP_COLUMNS | CHECKSUM_COLUMNS
        return self.options.view is View.BATCHES and not of_payloads & set(self.columns)


class FilePart(NamedTuple):
    """The positions [start, end) of a file, where it is divided; None for its end."""

    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class SharedRead:
    """A segment's reads for several views, by the number of the view. One is view `byte_ranges`,
    which has all bytes. `part` is what to read of a segment that is divided."""

    reads: Mapping[int, SegmentRead]
    part: FilePart | None = None

    @property
    def path(self) -> str:
        return next(iter(self.reads.values())).path

    @property
    def size(self) -> int:
        size = next(iter(self.reads.values())).size
        if self.part is not None:
            size = (self.part.end or size) - self.part.start
        return size * len(self.reads)


class SoundPart(NamedTuple):
    """A part of a file in which nothing is odd: its one run of sound batches, and the first and the
    last leader epoch among them, NO_VALUE if none has one."""

    file_path: str
    file_size: int
    run: ByteRange
    first_epoch: int
    last_epoch: int


class _OddPartError(Exception):
    """The part of a segment does not show what its bytes are."""


def is_whole(read: SegmentRead) -> bool:
    """Return whether a read is of all that a segment's file has."""
    return (
        read.base_offset is not None
        and oldest_base_offset(os.path.basename(read.path)) is None
        and read.first_offset <= read.base_offset
        and read.end_offset == LARGEST_OFFSET
        and not (read.start_position or read.next_position)
        and read.requested_start is None
        and read.requested_end is None
        and read.filling is None
        and read.committed is None
    )


def read_shared(shared: SharedRead, wanted: Sequence[WantedView]) -> Iterator[_Numbered]:
    """Yield the rows of the views, each batch with the number of its view in `wanted`."""
    try:
        file = opened(shared.path)
    except FileNotFoundError:
        # Each view says what it lacks.
        for number, read in shared.reads.items():
            yield from ((number, batch) for batch in read_segment(read, *wanted[number]))
        return
    with file:
        yield from _Walk(file, shared, wanted).rows()


def read_part(
    shared: SharedRead, wanted: Sequence[WantedView], take: Callable[[int, pa.RecordBatch], None]
) -> SoundPart | None:
    """Return what the part of a segment is, None where anything in it is odd, or where the file was
    deleted: then the segment has to be read as a whole, and what was taken of any part of it is
    void. Until then nothing is said about damage. `take` gets the rows of the views but
    `byte_ranges`."""
    try:
        with opened(shared.path) as file:
            walk = _Walk(file, shared, wanted)
            for number, batch in walk.part_rows():
                take(number, batch)
            return walk.sound_part()
    except (FileNotFoundError, _OddPartError):
        return None


def joined_rows(
    shared: SharedRead, wanted: Sequence[WantedView], parts: Sequence[SoundPart | None]
) -> list[_Numbered] | None:
    """Return the rows of view `byte_ranges` for a segment that was divided, None where its parts do
    not show them. Says what a read of the whole says about the end of the log."""
    sound = [part for part in parts if part is not None]
    if len(sound) < len(parts) or not all(_follow(one, other) for one, other in pairwise(sound)):
        return None
    last_epoch = NO_VALUE
    for part in sound:
        if NO_VALUE != part.first_epoch < last_epoch:
            return None
        last_epoch = max(last_epoch, part.last_epoch)
    try:
        with opened(shared.path) as file:
            if (file.path, file.size) != (sound[-1].file_path, sound[-1].file_size):
                return None
            return [*_Walk(file, replace(shared, part=None), wanted).joined([p.run for p in sound])]
    except FileNotFoundError:
        return None  # Deleted since: the read of the whole says what that lacks.


def _follow(one: SoundPart, other: SoundPart) -> bool:
    """Return whether the second part goes on where the first ends, as batches of one log do."""
    end: int = one.run["position"] + one.run["length"]  # type: ignore[operator]
    return bool(
        (one.file_path, one.file_size) == (other.file_path, other.file_size)
        and end == other.run["position"]
        and one.run["last_offset"] < other.run["base_offset"]  # type: ignore[operator]
    )


class _Walk:
    """The walk over an opened segment."""

    def __init__(self, file: InputFile, shared: SharedRead, wanted: Sequence[WantedView]) -> None:
        self._views = {
            wanted[number].options.view: (number, ViewRead(file, read, *wanted[number]))
            for number, read in shared.reads.items()
        }
        _, self._ranges = self._views[View.BYTE_RANGES]
        self._part = shared.part
        self._window = FileWindow(file, None if self._part is None else self._part.end)
        options = self._ranges.segment_options()
        walked = options
        if self._part is not None:
            # It begins wherever a sound batch does.
            walked = replace(options, start_position=self._part.start, first_offset=LARGEST_OFFSET)
        self._batches = SegmentBatches(self._window, walked)
        # Control batches have no records in view `records`; all others are decoded for it.
        self._checks = RecordColumns(options, (), {}, with_control_records=True)
        self._damage = SegmentDamage(file.path, self._ranges.options.mode)
        self._account = self._new_account()
        self._waiting: list[ByteRange] = []
        self._first_epoch = self._last_epoch = NO_VALUE

    def rows(self) -> Iterator[_Numbered]:
        """Yield the rows of the views."""
        records = self._records(self._damage.report)
        for chunk in self._batches.chunks():
            yield from self._of_chunk(chunk, records)
            if len(self._waiting) >= ROWS_PER_BATCH:
                yield from self._of_ranges()
        if records is not None:
            records.reader.end()
        yield from self._end(self._batches.next_offset)

    def part_rows(self) -> Iterator[_Numbered]:
        """Yield the rows of the views but `byte_ranges`. Raises _OddPartError."""
        records = self._records(_refuse)
        for chunk in self._batches.chunks():
            self._add_epochs(chunk.table)
            yield from self._of_chunk(chunk, records)
            if self._waiting or self._account.run is None:
                raise _OddPartError

    def sound_part(self) -> SoundPart:
        """Return what the part is, after its rows. Raises _OddPartError."""
        run, file = self._account.run, self._ranges.file
        start, end = self._part or (0, None)
        if run is None or run["position"] != start:
            raise _OddPartError
        if run["length"] != self._window.size - start or (end or file.size) != self._window.size:
            raise _OddPartError
        return SoundPart(file.path, file.size, run, self._first_epoch, self._last_epoch)

    def joined(self, runs: Sequence[ByteRange]) -> Iterator[_Numbered]:
        """Yield the rows of view `byte_ranges`, given those of all parts."""
        for run in runs:
            self._account.add_run(run)
        yield from self._end(runs[-1]["last_offset"] + 1)  # type: ignore[operator]

    def _of_chunk(self, chunk: Chunk, records: _Records | None) -> Iterator[_Numbered]:
        yield from self._checked(chunk, records)
        yield from self._of_batches(chunk)
        self._waiting += self._account.rows(chunk.table)

    def _add_epochs(self, table: LongArray) -> None:
        """Note the epochs of sound batches, which rise where none is odd."""
        epochs = table[:, column.LEADER_EPOCH]
        known = epochs[epochs >= 0]
        if len(known):
            if self._first_epoch == NO_VALUE:
                self._first_epoch = int(known[0])
            self._last_epoch = int(np.max(known))

    def _end(self, log_end: int) -> Iterator[_Numbered]:
        """Say what is missing after the segment, and yield the last ranges."""
        if View.RECORDS in self._views:
            _, read = self._views[View.RECORDS]
            segment, damage = read.segment, self._damage
            found_end = max(log_end, segment.first_offset)
            report_missing_end(
                segment.recorded_end, found_end, segment.end_offset, self._window.size, damage
            )
            damage.summarise()
        self._waiting += self._account.last_rows()
        yield from self._of_ranges()

    def _new_account(self) -> ByteRanges:
        segment, window = self._ranges.segment, self._window
        return ByteRanges(
            SegmentFacts(
                window.size,
                window.unreadable,
                segment.base_offset,
                segment.next_base_offset,
                segment.is_compacted,
                segment.recorded_end,
            )
        )

    def _records(self, on_fault: Callable[[FaultyRange], None]) -> _Records | None:
        if View.RECORDS not in self._views:
            return None
        number, read = self._views[View.RECORDS]
        constants = {**read.constants, "brokerId": read.segment.broker_id}
        reader = SegmentRecords(
            self._window,
            read.segment_options(),
            read.columns,
            constants,
            on_fault,
            walk=self._batches,
        )
        return _Records(number, reader)

    def _checked(self, chunk: Chunk, records: _Records | None) -> Iterator[_Numbered]:
        """Yield the records of a chunk, if they are wanted, and set the faults of all batches."""
        if records is None:
            self._checks.check(chunk)
            return
        table = chunk.table
        is_control = column.is_control(table) & (table[:, column.FAULT] == Fault.NONE)
        control = chunk.of_rows(is_control)
        # Before the records, which can take the bytes of the chunk with them.
        self._checks.check(control)
        yield from ((records.number, batch) for batch in records.reader.of_chunk(chunk))
        table[is_control] = control.table

    def _of_batches(self, chunk: Chunk) -> Iterator[_Numbered]:
        if View.BATCHES in self._views:
            number, read = self._views[View.BATCHES]
            batch = BatchColumns(read.columns, read.constants).batch(chunk.table)
            if batch is not None:
                yield number, batch

    def _of_ranges(self) -> Iterator[_Numbered]:
        number, read = self._views[View.BYTE_RANGES]
        if self._waiting:
            rows = self._waiting
            yield number, table_batch("byte_ranges", rows, read.range_constants, read.columns)
            self._waiting = []


def _refuse(fault: FaultyRange) -> NoReturn:
    """Leave it to a read of the whole to say what is damaged."""
    raise _OddPartError


class _Records(NamedTuple):
    number: int
    reader: SegmentRecords
