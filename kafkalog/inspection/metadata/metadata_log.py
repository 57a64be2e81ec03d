"""A node's copy of `__cluster_metadata`: its records, in order, up to the first damage.

As in Kafka, offsets have no gaps, a snapshot counts only if it is whole, and nothing after a
damaged batch counts: what it did is not known. Rules: docs/format.md F764 and F765.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kafkalog.columns.arrays import integers
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.messages.metadata_columns import read_metadata_records
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.columns.records.record_metadata import IS_CONTROL
from kafkalog.errors import CorruptDataError, OffsetOutOfRangeError
from kafkalog.format.batch_header import BatchHeader, read_header
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import offset_bounds
from kafkalog.format.record_batch import read_batch
from kafkalog.messages.internal_records import InternalRecord, read_control_record
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.unreadable_input import DELETED, note_deleted
from kafkalog.storage.log_dir.metadata_snapshots import MetadataSnapshot, metadata_snapshots
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.index_lookup import checked_frames, start_position
from kafkalog.storage.reading.log_reader import LogReader
from kafkalog.storage.reading.renamed_files import opened_segment
from kafkalog.storage.recovery.framing import check_sum, frames

_COLUMNS = ("offset", "leaderEpoch", "timestampMs", IS_CONTROL, "key", "value")
_CHUNK_BYTES = 4 * 1024 * 1024
# So many records are decoded together.
_RECORDS_AT_ONCE = 8192
# What is wrong with a batch whose records a broker replays all the same.
_OF_OFFSETS = (Fault.OFFSET_RANGE.label, Fault.OFFSET_ORDER.label)
_HEADER, _FOOTER = "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"


class MetadataBatch(NamedTuple):
    """A sound batch, and where it is."""

    header: BatchHeader
    data: bytes
    path: str
    position: int

    def entries(self) -> Iterator[MetadataEntry]:
        """Yield its records. Raises CorruptDataError."""
        yield from _decoded(self.stored())

    def stored(self) -> list[_Stored]:
        """Return its records as they are stored. Raises CorruptDataError."""
        try:
            records = read_batch(self.data, 0)
        except CorruptDataError as error:
            raise error.located(self.path, self.position, self.header.base_offset) from error
        epoch, is_control = self.header.leader_epoch, self.header.is_control
        return [
            _Stored(each.offset, epoch, each.timestamp_ms, is_control, each.key, each.value)
            for each in records
        ]


class _Stored(NamedTuple):
    """A record that is not decoded."""

    offset: int
    leader_epoch: int
    timestamp_ms: int
    is_control: bool
    key: bytes | None
    value: bytes | None


class MetadataEntry(NamedTuple):
    """A record of the log, or of a snapshot, where offsets begin with 0."""

    offset: int
    leader_epoch: int
    timestamp_ms: int
    record: InternalRecord

    @property
    def name(self) -> str | None:
        return self.record.name

    @property
    def is_control(self) -> bool:
        return self.record.is_control

    @property
    def value(self) -> dict[str, object] | None:
        return self.record.value

    @property
    def detail(self) -> str | None:
        return self.record.detail


def _decoded(stored: Sequence[_Stored]) -> Iterator[MetadataEntry]:
    """Yield records in their order: those of a type are decoded together."""
    data = [(each.key, each.value) for each in stored if not each.is_control]
    read = iter(read_metadata_records(data))
    for offset, epoch, timestamp_ms, is_control, key, value in stored:
        content = read_control_record(key, value) if is_control else next(read)
        yield MetadataEntry(offset, epoch, timestamp_ms, content)


class MetadataLog:
    """A copy's segments and snapshots. Raises OSError for a directory that cannot be read, and
    LogDirError for segments whose names give no order."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.snapshots: list[MetadataSnapshot] = metadata_snapshots(log)
        self._reader = LogReader(log)

    @property
    def start_offset(self) -> int:
        """The first offset of the log, which has no record below it."""
        return self._reader.start_offset

    def batches(self, offset: int) -> Iterator[MetadataBatch]:
        """Yield the batches from the one that has `offset` on. Raises CorruptDataError at the first
        that is damaged, or that does not follow on the one before."""
        expected = offset
        while True:
            try:
                chunk = self._reader.read(max(expected, self.start_offset), _CHUNK_BYTES)
            except OffsetOutOfRangeError:
                return  # a snapshot can end after the log
            if not chunk.data:
                return
            position = chunk.position
            for data in chunk.batches():
                header = read_header(data, 0)
                if header.base_offset > expected:
                    detail = f"offsets {expected} to {header.base_offset - 1} are missing"
                    raise CorruptDataError(
                        "segment_hole", detail, position=position, path=chunk.path
                    )
                yield MetadataBatch(header, data, chunk.path or "", position)
                position += len(data)
                expected = header.last_offset + 1

    def entries(self, offset: int) -> Iterator[MetadataEntry]:
        """Yield the records from `offset` on. Raises as `batches` does."""
        if offset >= self.start_offset:
            offset, is_all = yield from self._sound_entries(offset)
            if is_all:
                return
        batches = self.batches(offset)
        error: CorruptDataError | None = None
        is_ended = False
        while not is_ended:
            stored: list[_Stored] = []
            is_ended = True
            try:
                for batch in batches:
                    stored += batch.stored()
                    if len(stored) >= _RECORDS_AT_ONCE:
                        is_ended = False
                        break
            except CorruptDataError as found:
                # What is sound before it comes first.
                error = found
            yield from (entry for entry in _decoded(stored) if entry.offset >= offset)
            if error is not None:
                raise error

    def replayed(self, offset: int) -> Iterator[MetadataEntry]:
        """Yield the records from `offset` on as a broker replays them: it takes the offsets of
        batches as they are (F1408). Raises CorruptDataError where it cannot go on."""
        try:
            yield from self.entries(offset)
        except CorruptDataError as error:
            if error.fault not in _OF_OFFSETS or error.path is None:
                raise
            with InputFile(error.path) as file:
                for frame in frames(file, error.position):
                    check_sum(file, frame)
                    data = file.read(frame.position, frame.header.size)
                    batch = MetadataBatch(frame.header, data, error.path, frame.position)
                    yield from batch.entries()

    def _sound_entries(self, offset: int) -> Generator[MetadataEntry, None, tuple[int, bool]]:
        """Yield the records from `offset` on by the compiled reader, up to the first chunk that
        has anything odd: the reader of batches says what that is. Return the next offset, and
        whether nothing is left."""
        expected = offset
        for segment in self.log.segments:
            if segment.next_base_offset is not None and segment.next_base_offset <= expected:
                continue
            with opened_segment(segment) as file:
                position = start_position(file.path, expected)
                options = SegmentOptions.of(segment, first_offset=expected)
                options = replace(options, start_position=position)
                columns = RecordColumns(options, _COLUMNS, {}, with_control_records=True)
                for chunk in SegmentBatches(FileWindow(file), options).chunks():
                    found = [] if _is_odd(chunk) else [*columns.batches(chunk)]
                    if _is_odd(chunk):
                        return expected, False
                    for rows in found:
                        first = int(np.searchsorted(integers(rows.column("offset")), expected))
                        rows = rows.slice(first)
                        offsets = integers(rows.column("offset"))
                        if (offsets != np.arange(expected, expected + len(rows))).any():
                            return expected, False
                        expected += len(rows)
                        values = (rows.column(name).to_pylist() for name in _COLUMNS)
                        yield from _decoded([*map(_Stored, *values)])
        return expected, True


def _is_odd(chunk: Chunk) -> bool:
    return bool((chunk.table[:, column.FAULT] != 0).any())


def snapshot_entries(path: str) -> list[MetadataEntry]:
    """Return the records of a whole snapshot. Raises CorruptDataError for one that is damaged or
    unfinished."""
    stored: list[_Stored] = []
    position = 0
    with _snapshot_file(path) as file:
        try:
            for frame in checked_frames(file, 0, offset_bounds(0, None)):
                check_sum(file, frame)
                data = file.read(frame.position, frame.header.size)
                stored += MetadataBatch(frame.header, data, path, position).stored()
                position = frame.end
        except CorruptDataError as error:
            raise error.located(path, error.position, error.base_offset) from error
        if position < file.size:
            detail = "the file ends inside a batch"
            raise CorruptDataError("truncated", detail, position=position, path=path)
    entries = [*_decoded(stored)]
    ends = (entries[0].name, entries[-1].name) if entries else (None, None)
    if ends != (_HEADER, _FOOTER):
        detail = f"a snapshot begins with {_HEADER} and ends with {_FOOTER}: this one is unfinished"
        raise CorruptDataError("truncated", detail, position=position, path=path)
    return entries


def _snapshot_file(path: str) -> InputFile:
    """Return the file of a snapshot. Brokers delete old ones: then the one before it, or the log,
    says what it said."""
    try:
        return InputFile(path)
    except FileNotFoundError:
        note_deleted(path)
        raise CorruptDataError(Fault.UNREADABLE.label, DELETED, position=0, path=path) from None


def snapshot_time_ms(entries: list[MetadataEntry]) -> int:
    """Return when the last record that a snapshot contains was written, as its header says."""
    value = entries[0].value or {}
    time_ms = value.get("lastContainedLogTimestamp", -1)
    return time_ms if isinstance(time_ms, int) else -1
