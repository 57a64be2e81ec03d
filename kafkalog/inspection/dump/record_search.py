"""Looking for records by their key or value in one segment, and what could hide them there.

Rule: docs/command-line.md F587.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import binaries, integers
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.fault_details import (
    FaultyRange,
    faulty_range,
    missing_end,
    segment_hole,
)
from kafkalog.columns.batches.segment_batches import Chunk, SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow, MemoryWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.columns.records.record_metadata import IS_CONTROL
from kafkalog.columns.transactions.transaction_markers import is_transactional
from kafkalog.columns.transactions.transaction_outcomes import transaction_outcomes
from kafkalog.columns.transactions.transaction_walk import StableOffset, stable_offset
from kafkalog.errors import LogDirError
from kafkalog.format.faults import Fault, Severity
from kafkalog.format.offsets import LARGEST_OFFSET, OffsetSpan
from kafkalog.inspection.dump.dump_messages import is_decoded, may_have_connect_secrets
from kafkalog.inspection.logs.missing_offsets import MissingOffsets
from kafkalog.inspection.logs.replica_facts import is_sound
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import recorded_end
from kafkalog.storage.reading.offset_ranges import TimestampRange
from kafkalog.storage.reading.renamed_files import opened_segment

_COLUMNS = ("offset", "timestampMs", "position", "key", "value", IS_CONTROL)
_PAYLOADS = ("offset", "key", "value", "headers")
# Of keys and values as they are, the beginnings that are shown in a table.
SHOWN_BYTES = 256
RecordFilter = Callable[[pa.RecordBatch], pa.RecordBatch]


class Visibility(StrEnum):
    """Whether consumers see a record. If they read committed records, they see one after an open
    transaction only when that has ended; the markers of transactions they never see."""

    VISIBLE = "visible"
    ABORTED = "aborted"
    OPEN = "open transaction"
    BEHIND_OPEN = "behind open transaction"
    ABOVE = "above high watermark"
    UNKNOWN = "unknown"
    DELETED = "below log start"
    CONTROL = "control"
    DIVERGED = "not in the best replica"


@dataclass(frozen=True, slots=True)
class MatchedRecord:
    """A record that was looked for; `value_size` is None for a tombstone, `size` is that of key and
    value, `batch` is the row of its batch in the batch table. `judged_records` finds out what
    became of its transaction, `with_payloads` reads `key`, `value` and `headers`."""

    offset: int
    timestamp_ms: int
    position: int
    value_size: int | None
    visibility: Visibility
    path: str
    batch: LongArray
    size: int = 0
    key: bytes | None = None
    value: bytes | None = None
    headers: list[Any] | None = None


@dataclass
class SegmentSearch:
    """What was looked through; `records` are not control records. `found` are the newest matches,
    `matches` is how many there are; `undecoded` values could
    not be looked into; offsets are from `first_offset` up to, not including,
    `end_offset`, of sound batches. `endings` are what a broker leaves at the end of its last file
    when it stops while writing: no damage, and no records either. `lacks_offsets`: between sound
    batches offsets are missing, as the cleaner leaves them. `keyless` records have no key."""

    size: int
    first_offset: int | None = None
    end_offset: int | None = None
    records: int = 0
    matches: int = 0
    undecoded: int = 0
    found: list[MatchedRecord] = field(default_factory=list)
    damages: list[FaultyRange] = field(default_factory=list)
    endings: list[FaultyRange] = field(default_factory=list)
    lacks_offsets: bool = False
    keyless: int = 0


class ReadRecords(NamedTuple):
    """Which records are looked at: those with these times, all without any; control records too if
    wanted; with their headers if something is looked for in these."""

    timestamps: TimestampRange | None = None
    control_records: bool = False
    headers: bool = False


def wanted_records(key: bytes | None, contained: bytes | None) -> RecordFilter:
    """Return records with exactly this key, and these bytes in their value."""

    def kept(records: pa.RecordBatch) -> pa.RecordBatch:
        if key is not None:
            is_key = pc.equal(records.column("key"), pa.scalar(key, pa.binary()))
            records = records.filter(is_key)
        if contained is not None:
            records = records.filter(pc.match_substring(records.column("value"), contained))
        return records

    return kept


def search_segment(
    log: PartitionLog,
    segment: SegmentFile,
    file: InputFile,
    wanted: RecordFilter,
    most: int,
    reads: ReadRecords,
    *,
    by_size: bool = False,
) -> SegmentSearch:
    """Look through a segment, its checksums checked; of the matches the newest `most` are kept, or
    the largest if `by_size`."""
    search = SegmentSearch(size=file.size)
    options = replace(SegmentOptions.of(segment), timestamps=reads.timestamps)
    columns = (*_COLUMNS, "headers") if reads.headers else _COLUMNS
    records = RecordColumns(options, columns, {}, with_control_records=reads.control_records)
    kept: list[MatchedRecord] = []
    batches = SegmentBatches(FileWindow(file), options)
    is_last = segment.next_base_offset is None
    offsets = MissingOffsets(LARGEST_OFFSET, segment.base_offset or 0)
    found = searched_records(search, batches, records, is_last=is_last, on_chunk=offsets.take_sound)
    for batch, table in found:
        search.keyless += batch.column("key").null_count
        matches = wanted(batch)
        search.matches += len(matches)
        # Only so many can be kept of one batch.
        chosen = (
            _largest_rows(matches, most) if by_size else matches.slice(max(len(matches) - most, 0))
        )
        kept += _found(chosen, log.log_start, segment.path, table)
        if by_size:
            kept.sort(key=largest_first)
        kept = kept[:most] if by_size else kept[-most:]
    missing = _missing(log, segment, file.size, batches.next_offset)
    search.damages += [missing] if missing else []
    search.found = kept
    search.lacks_offsets = bool(offsets.end) and not search.damages
    return search


def largest_first(record: MatchedRecord) -> tuple[int, int]:
    """Return what records are sorted by, the largest first."""
    return -record.size, record.offset


def _largest_rows(records: pa.RecordBatch, most: int) -> pa.RecordBatch:
    sizes = _sizes(records)
    if len(sizes) <= most:
        return records
    rows = np.argpartition(sizes, len(sizes) - most)[-most:]
    return records.take(pa.array(np.sort(rows)))


def _sizes(records: pa.RecordBatch) -> LongArray:
    """Return the bytes of key and value of each record."""
    lengths = [
        np.diff(binaries(records.column(name))[1]).astype(np.int64) for name in ("key", "value")
    ]
    return lengths[0] + lengths[1]


def searched_records(
    search: SegmentSearch,
    batches: SegmentBatches,
    records: RecordColumns,
    *,
    is_last: bool,
    on_chunk: Callable[[LongArray], object] = lambda _: None,
) -> Iterator[tuple[pa.RecordBatch, LongArray]]:
    """Yield the records of a segment that are not control records and those that are, if `records`
    has them, each time with the batch table that they are of; `search` is the account of it. With
    control records the columns include "isControl". `is_last`: it is the last segment of its log.
    `on_chunk` gets each batch table when its records were read."""
    for chunk in batches.chunks():
        for batch in records.batches(chunk):
            search.records += len(batch)
            if IS_CONTROL in batch.schema.names:
                search.records -= pc.sum(batch.column(IS_CONTROL)).as_py() or 0
            yield batch, chunk.table
        _note(search, chunk, search.size, is_last=is_last)
        on_chunk(chunk.table)


def _missing(
    log: PartitionLog, segment: SegmentFile, size: int, next_offset: int
) -> FaultyRange | None:
    """Return the offsets after the last batch of a segment that had records and are in no file."""
    if segment.next_base_offset is None:
        return missing_end(next_offset, size, recorded_end(log))
    # From a log that is cleaned they may have been removed: it is reported as compacted anyway.
    if log.is_compacted:
        return None
    return segment_hole(next_offset, segment.next_base_offset, size, is_compacted=False)


def _found(
    records: pa.RecordBatch, log_start: int, path: str, table: LongArray
) -> Iterator[MatchedRecord]:
    if not len(records):
        return
    sizes = pc.binary_length(records.column("value")).to_pylist()
    numbers = [integers(records.column(name)).tolist() for name in _COLUMNS[:3]]
    whole = _sizes(records).tolist()
    for offset, timestamp_ms, position, size, of_record in zip(*numbers, sizes, whole, strict=True):
        row = int(np.searchsorted(table[:, column.POSITION], position))
        batch = table[row].copy()
        seen = Visibility.DELETED if offset < log_start else Visibility.VISIBLE
        place = offset, timestamp_ms, position, size
        yield MatchedRecord(*place, seen, path, batch, of_record)


def _note(search: SegmentSearch, chunk: Chunk, size: int, *, is_last: bool) -> None:
    table = chunk.table
    sound = table[table[:, column.FAULT] == 0]
    if len(sound):
        if search.first_offset is None:
            # Of a wrapper of the old formats the header has the last offset only.
            search.first_offset = (
                int(sound[0, column.LAST_OFFSET]) + 1 - max(int(sound[0, column.RECORDS_COUNT]), 1)
            )
        search.end_offset = int(sound[-1, column.LAST_OFFSET]) + 1
    for row in table[table[:, column.FAULT] != 0].tolist():
        ends_log = is_last and row[column.POSITION] + row[column.SIZE] == size
        damage = faulty_range(row, chunk.unreadable, ends_log=ends_log)
        is_damage = damage.severity > Severity.INFORMATION
        (search.damages if is_damage else search.endings).append(damage)


def with_payloads(
    log: PartitionLog, found: Sequence[MatchedRecord], *, are_whole: bool
) -> Iterator[MatchedRecord]:
    """Yield records with keys, values and headers, which are read once more from their batches: so
    no others of the search take memory. If not `are_whole`, keys and values are the beginnings,
    unless they are to be shown decoded. Raises LogDirError for a segment that was cleaned since."""
    segments = {segment.path: segment for segment in log.segments}
    for path, in_file in groupby(sorted(found, key=_place), lambda record: record.path):
        with opened_segment(segments[path]) as file:
            for _, some in groupby(in_file, lambda record: record.position):
                records = [*some]
                payloads = _payloads(file, records, log.topic or "", are_whole=are_whole)
                for record in records:
                    key, value, headers = payloads[record.offset]
                    yield replace(record, key=key, value=value, headers=headers)


def _place(record: MatchedRecord) -> tuple[str, int, int]:
    return record.path, record.position, record.offset


def _payloads(
    file: InputFile, found: Sequence[MatchedRecord], topic: str, *, are_whole: bool
) -> dict[int, tuple[Any, Any, Any]]:
    """Return keys, values and headers of records of a batch, by their offsets."""
    row = found[0].batch.copy()
    position, size = found[0].position, int(row[column.SIZE])
    if not is_sound(file, row):
        raise LogDirError(
            f"{found[0].path}: position {position}: the segment was cleaned while it was searched: "
            "search again"
        )
    row[column.POSITION] = 0
    data = np.frombuffer(file.read_around(position, size), dtype=np.uint8)
    offsets = np.array([each.offset for each in found], dtype=np.int64)
    options = SegmentOptions(chosen_offsets=offsets)
    columns = RecordColumns(options, _PAYLOADS, {}, with_control_records=True)
    read: dict[int, tuple[Any, Any, Any]] = {}
    for batch in columns.batches(Chunk(row[np.newaxis], MemoryWindow(data))):
        is_chosen = pc.is_in(batch.column("offset"), pa.array(offsets))
        chosen = batch if len(batch) == len(offsets) else batch.filter(is_chosen)
        keys, values = chosen.column("key"), chosen.column("value")
        if not are_whole and not is_decoded(topic):
            has_secrets = may_have_connect_secrets(keys)
            values = pc.if_else(has_secrets, values, pc.binary_slice(values, 0, SHOWN_BYTES))
            keys = pc.binary_slice(keys, 0, SHOWN_BYTES)
        lists = (each.to_pylist() for each in (keys, values, chosen.column("headers")))
        read |= dict(
            zip(chosen.column("offset").to_pylist(), zip(*lists, strict=True), strict=True)
        )
    return read


def judged_records(log: PartitionLog, found: Sequence[MatchedRecord]) -> list[MatchedRecord]:
    """Return records of a log, in the order of their offsets, with what consumers see of them."""
    if not found or not log.is_live:
        return list(found)
    offsets = np.array([record.offset for record in found], dtype=np.int64)
    seen = VisibilityJudge(log).judged(offsets, np.stack([record.batch for record in found]))
    return [replace(record, visibility=each) for record, each in zip(found, seen, strict=True)]


class VisibilityJudge:
    """Finds out what consumers see of records of one log."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._stable: StableOffset | None = None

    def judged(self, offsets: LongArray, batches: LongArray) -> list[Visibility]:
        """Return what consumers see of records with these offsets, ascending, and these rows of
        their batches in the batch table, at least one."""
        if self._stable is None:
            self._stable = stable_offset(self._log, looks_for_damage=False)
        stable, table = self._stable, batches.copy()
        is_in_transaction = is_transactional(table, control=False)
        requested = OffsetSpan(
            int(table[0, column.BASE_OFFSET]), int(table[-1, column.LAST_OFFSET]) + 1
        )
        logs = [(self._log, LARGEST_OFFSET)]
        with transaction_outcomes(logs, requested, stable.end_offset, check_crcs=True) as outcomes:
            aborted = outcomes.is_aborted(table, requested.start, stable.offset)
        unknown = table[:, column.FAULT] == Fault.TRANSACTION
        opened_at = {each.producer_id: each.first_offset for each in stable.holders}
        is_control = column.is_control(table)
        return [
            Visibility.DELETED
            if offset < self._log.log_start
            else Visibility.CONTROL
            if is_control[row]
            else _visibility(
                offset,
                stable,
                opened_at.get(int(table[row, column.PRODUCER_ID]))
                if is_in_transaction[row]
                else None,
                is_aborted=bool(aborted[row]),
                is_unknown=bool(unknown[row]),
            )
            for row, offset in enumerate(offsets.tolist())
        ]


def _visibility(
    offset: int, stable: StableOffset, opened_at: int | None, *, is_aborted: bool, is_unknown: bool
) -> Visibility:
    """`opened_at` is where the transaction begins that the record's producer has open, if it has
    one and the record is of a transaction."""
    if stable.high_watermark is not None and offset >= stable.high_watermark:
        return Visibility.ABOVE
    if offset >= stable.offset:
        is_open = opened_at is not None and offset >= opened_at
        return Visibility.OPEN if is_open else Visibility.BEHIND_OPEN
    if is_aborted:
        return Visibility.ABORTED
    return Visibility.UNKNOWN if is_unknown else Visibility.VISIBLE
