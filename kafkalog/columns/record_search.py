"""Looking for records by their key or value in one segment, and what could hide them there.

Rule: docs/command-line.md F587.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import integers
from kafkalog.columns.batch_table import (
    BASE_OFFSET,
    FAULT,
    LAST_OFFSET,
    POSITION,
    RECORDS_COUNT,
    SIZE,
)
from kafkalog.columns.compiled import LongArray
from kafkalog.columns.fault_details import FaultyRange, faulty_range
from kafkalog.columns.record_columns import RecordColumns
from kafkalog.columns.segment_batches import SegmentBatches, SegmentOptions
from kafkalog.columns.transaction_markers import is_transactional
from kafkalog.columns.transaction_outcomes import transaction_outcomes
from kafkalog.columns.transaction_walk import stable_offset
from kafkalog.columns.window import FileWindow
from kafkalog.format.faults import Fault, Severity
from kafkalog.format.segment import LARGEST_OFFSET
from kafkalog.storage.files import InputFile
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.replicas import OffsetSpan

_COLUMNS = ("offset", "timestampMs", "position", "key", "value")
Wanted = Callable[[pa.RecordBatch], pa.RecordBatch]


class Visibility(StrEnum):
    """Whether consumers see a record."""

    VISIBLE = "visible"
    ABORTED = "aborted"
    OPEN = "open transaction"
    UNKNOWN = "unknown"
    DELETED = "below log start"


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record that was looked for; `value_size` is None for a tombstone."""

    offset: int
    timestamp_ms: int
    position: int
    value_size: int | None
    visibility: Visibility


@dataclass
class SegmentSearch:
    """What was looked through. `found` are the newest matches, `matches` is how many there are;
    offsets are from `first_offset` up to, not including, `end_offset`, of sound batches."""

    size: int
    first_offset: int | None = None
    end_offset: int | None = None
    records: int = 0
    matches: int = 0
    found: list[FoundRecord] = field(default_factory=list)
    damages: list[FaultyRange] = field(default_factory=list)


def wanted_records(key: bytes | None, contained: bytes | None) -> Wanted:
    """Records with exactly this key, and these bytes in their value."""

    def kept(records: pa.RecordBatch) -> pa.RecordBatch:
        if key is not None:
            is_key = pc.equal(records.column("key"), pa.scalar(key, pa.binary()))
            records = records.filter(is_key)
        if contained is not None:
            records = records.filter(pc.match_substring(records.column("value"), contained))
        return records

    return kept


def search_segment(
    log: PartitionLog, segment: SegmentFile, file: InputFile, wanted: Wanted, most: int
) -> SegmentSearch:
    """Look through a segment, its checksums checked; of the matches the newest `most` are kept."""
    search = SegmentSearch(size=file.size)
    options = SegmentOptions.of(segment)
    records = RecordColumns(options, _COLUMNS, {})
    newest: deque[tuple[FoundRecord, LongArray]] = deque(maxlen=most)
    for chunk in SegmentBatches(FileWindow(file), options).chunks():
        table = chunk.table
        for batch in records.batches(chunk):
            search.records += len(batch)
            for found in _found(wanted(batch), log.log_start):
                search.matches += 1
                row = int(np.searchsorted(table[:, POSITION], found.position))
                newest.append((found, table[row].copy()))
        _note(search, table, file.size, is_last=segment.next_base_offset is None)
    search.found = _judged(log, newest)
    return search


def _found(records: pa.RecordBatch, log_start: int) -> Iterator[FoundRecord]:
    if not len(records):
        return
    sizes = pc.binary_length(records.column("value")).to_pylist()
    numbers = [integers(records.column(name)).tolist() for name in _COLUMNS[:3]]
    for offset, timestamp_ms, position, size in zip(*numbers, sizes, strict=True):
        seen = Visibility.DELETED if offset < log_start else Visibility.VISIBLE
        yield FoundRecord(offset, timestamp_ms, position, size, seen)


def _note(search: SegmentSearch, table: LongArray, size: int, *, is_last: bool) -> None:
    sound = table[table[:, FAULT] == 0]
    if len(sound):
        if search.first_offset is None:
            # Of a wrapper of the old formats the header has the last offset only.
            search.first_offset = (
                int(sound[0, LAST_OFFSET]) + 1 - max(int(sound[0, RECORDS_COUNT]), 1)
            )
        search.end_offset = int(sound[-1, LAST_OFFSET]) + 1
    for row in table[table[:, FAULT] != 0].tolist():
        ends_log = is_last and row[POSITION] + row[SIZE] == size
        damage = faulty_range(row, ends_log=ends_log)
        if damage.severity > Severity.INFORMATION:
            search.damages.append(damage)


def _judged(log: PartitionLog, newest: deque[tuple[FoundRecord, LongArray]]) -> list[FoundRecord]:
    """The matches with what became of the transactions that they are part of."""
    found = [record for record, _ in newest]
    if not found or not log.is_live:
        return found
    table = np.stack([row for _, row in newest])
    rows = np.flatnonzero(is_transactional(table, control=False))
    if not len(rows):
        return found
    stable = stable_offset(log, looks_for_damage=False)
    asked = OffsetSpan(int(table[0, BASE_OFFSET]), int(table[-1, LAST_OFFSET]) + 1)
    logs = [(log, LARGEST_OFFSET)]
    with transaction_outcomes(logs, asked, stable.end_offset, check_crcs=True) as outcomes:
        aborted = outcomes.is_aborted(table, asked.start, stable.offset)
    for row in rows.tolist():
        if found[row].visibility is not Visibility.DELETED:
            is_unknown = table[row, FAULT] == Fault.TRANSACTION
            seen = Visibility.UNKNOWN if is_unknown else Visibility.VISIBLE
            seen = Visibility.ABORTED if aborted[row] else seen
            is_open = found[row].offset >= stable.offset
            found[row] = replace(found[row], visibility=Visibility.OPEN if is_open else seen)
    return found
