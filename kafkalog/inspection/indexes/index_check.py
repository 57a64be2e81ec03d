"""The check of a segment's indexes against its batch headers, in one walk over them.

What brokers of any version write is sound, what they would not is a finding; any bytes give
findings, at most one of each kind for each file. Rules: docs/format.md F130 to F136.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import is_wrapper, new_table
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.faults import Severity
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.format.side_files.indexes import OFFSET_ENTRY, TIME_ENTRY, used_bytes
from kafkalog.inspection.indexes.header_walk import (
    EntryOrder,
    HeaderTable,
    OffsetLookup,
    Place,
    entry_columns,
)
from kafkalog.inspection.indexes.index_findings import (
    BEYOND_END,
    EMPTY,
    INCOMPLETE,
    INNER_OFFSET,
    LOG_DAMAGED,
    MISSING,
    NOT_RISING,
    OFFSET,
    TIMESTAMP,
    WRONG_POSITION,
    ZEROS,
    IndexFinding,
    entry_finding,
    not_rising,
    size_finding,
)
from kafkalog.inspection.indexes.transaction_index_check import TransactionIndexCheck

# The newest format before 0.11: messages with timestamps, and no batches yet.
_LARGEST_OLD_MAGIC = 1

OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"


@dataclass(frozen=True, slots=True)
class SegmentIndexes:
    """The contents of the indexes beside a log file, None where there is no such file.

    `is_active`: a broker may still write to the segment. `is_trimmed`: it has been closed since,
    so that no free places are left in its indexes. `has_none_of_times`: no segment of the partition
    has a time index, and the partition has no leader epochs.
    """

    base_offset: int
    index: bytes | None
    timeindex: bytes | None
    txnindex: bytes | None
    is_active: bool
    is_trimmed: bool
    has_none_of_times: bool = False


def check_indexes(tables: Iterable[LongArray], indexes: SegmentIndexes) -> list[IndexFinding]:
    """Return what is wrong with the indexes of the log whose batch tables these are.

    The tables cover the file; of each only what the headers show is used.
    """
    base_offset = min(indexes.base_offset, LARGEST_OFFSET)
    checks = list(_checks(indexes, base_offset))
    headers = HeaderTable(new_table(0), base_offset)
    largest_magic = 0
    for table in tables:
        headers = HeaderTable(table, headers)
        largest_magic = max(largest_magic, int(table[:, column.MAGIC].max(initial=0)))
        for check in checks:
            check.add(headers)
    findings = [*_missing(indexes, headers, largest_magic), *_free_places(indexes)]
    for check in checks:
        findings += check.findings(headers)
    return findings


def _checks(
    indexes: SegmentIndexes, base_offset: int
) -> Iterator[OffsetIndexCheck | TimeIndexCheck | TransactionIndexCheck]:
    if indexes.index is not None:
        used = used_bytes(indexes.index, OFFSET_ENTRY.size)
        yield OffsetIndexCheck(indexes.index, used, base_offset)
    if indexes.timeindex is not None:
        used = used_bytes(indexes.timeindex, TIME_ENTRY.size)
        yield TimeIndexCheck(indexes.timeindex, used, base_offset, is_active=indexes.is_active)
    if indexes.txnindex is not None:
        yield TransactionIndexCheck(indexes.txnindex, base_offset)


def _missing(
    indexes: SegmentIndexes, end: HeaderTable, largest_magic: int
) -> Iterator[IndexFinding]:
    # Brokers make it at the first append: a segment rolled since, such as that of a topic whose
    # records have all expired, has none after a clean stop.
    if indexes.index is None and end.end > 0:
        detail = "not there: a broker that starts reads the whole of a live segment to make it"
        yield IndexFinding(".index", MISSING, Severity.WARNING, detail)
    # Messages have timestamps since 0.10.0, segments time indexes since 0.10.1.
    is_of_0_10_0 = indexes.has_none_of_times and largest_magic <= _LARGEST_OLD_MAGIC
    if indexes.timeindex is None and end.latest_ms != NO_VALUE and not is_of_0_10_0:
        detail = "not there: a broker that starts makes an empty one, by which no time is found"
        yield IndexFinding(".timeindex", MISSING, Severity.WARNING, detail)


def _free_places(indexes: SegmentIndexes) -> Iterator[IndexFinding]:
    if indexes.is_active and not indexes.is_trimmed:
        return
    for kind, data, entry_bytes in (
        (".index", indexes.index, OFFSET_ENTRY.size),
        (".timeindex", indexes.timeindex, TIME_ENTRY.size),
    ):
        used = used_bytes(data or b"", entry_bytes)
        zeros = len(data or b"") - used
        # One place alone can be the entry of the time 0 for the segment's first offset.
        may_be_entry = kind == ".timeindex" and used == 0
        if zeros >= entry_bytes * (1 + may_be_entry):
            detail = f"{zeros} zero bytes after the entries, which a broker takes for entries"
            yield IndexFinding(kind, ZEROS, Severity.ERROR, detail)


class OffsetIndexCheck:
    """Takes the log's headers table by table, then reports what is wrong with the index."""

    def __init__(self, data: bytes, used_bytes: int, base_offset: int) -> None:
        self._size = len(data)
        relative, self._positions = entry_columns(data[:used_bytes], OFFSET_ENTRY)
        self._base_offset = base_offset
        self._offsets = relative + np.array([base_offset])
        self._by_position = EntryOrder(self._positions)
        self._ends = OffsetLookup(self._offsets, (column.LAST_OFFSET, column.POSITION))
        self._places = np.full(len(relative), Place.BEYOND)
        self._is_first_offset = np.zeros(len(relative), dtype=bool)
        self._batch_last = np.zeros(len(relative), dtype=np.int64)
        self._last_batch_position = 0

    def add(self, headers: HeaderTable) -> None:
        """Hold the entries against the next batches."""
        self._ends.add(headers)
        table = headers.table
        sound = table[table[:, column.FAULT] == 0]
        if len(sound):
            self._last_batch_position = int(sound[-1, column.POSITION])
        for entries in self._by_position.between(headers.position, headers.end):
            self._add(headers, entries)

    def _add(self, headers: HeaderTable, entries: LongArray) -> None:
        table = headers.table
        starts = table[:, column.POSITION]
        rows = np.searchsorted(starts, self._positions[entries], side="right") - 1
        batches, offsets = table[rows], self._offsets[entries]
        is_start = starts[rows] == self._positions[entries]
        sound = np.where(is_start, Place.BATCH, Place.NOWHERE)
        self._places[entries] = np.where(batches[:, column.FAULT] != 0, Place.DAMAGED, sound)
        self._batch_last[entries] = batches[:, column.LAST_OFFSET]
        # The first offset inside a compressed message of the old formats is not in its header.
        is_inside = is_wrapper(batches) & (headers.last_offset_before[rows] < offsets)
        is_inside &= offsets <= batches[:, column.LAST_OFFSET]
        self._is_first_offset[entries] = (batches[:, column.BASE_OFFSET] == offsets) | is_inside

    def findings(self, end: HeaderTable) -> Iterator[IndexFinding]:
        """Yield all findings; `end` is the last table added."""
        offsets, positions, places = self._offsets, self._positions, self._places
        yield from size_finding(OFFSET_INDEX, self._size, OFFSET_ENTRY.size)
        yield from entry_finding(
            OFFSET_INDEX,
            NOT_RISING,
            Severity.ERROR,
            not_rising(offsets) | not_rising(positions),
            lambda i: f"{self._entry(i)} after {self._entry(i - 1)}",
        )
        yield from entry_finding(
            OFFSET_INDEX,
            WRONG_POSITION,
            Severity.ERROR,
            (places == Place.NOWHERE) | (positions < 0),
            lambda i: f"{self._entry(i)}, where no batch begins",
        )
        yield from entry_finding(
            OFFSET_INDEX,
            OFFSET,
            Severity.ERROR,
            (places == Place.BATCH) & ~self._has_right_offset(end),
            lambda i: f"{self._entry(i)}, where a batch ends with offset {self._batch_last[i]}",
        )
        is_beyond = (places == Place.BEYOND) & (positions >= 0)
        yield from entry_finding(
            OFFSET_INDEX,
            BEYOND_END,
            Severity.ERROR,
            is_beyond,
            lambda i: f"{self._entry(i)}, the log ends at {end.end}",
        )
        yield from entry_finding(
            OFFSET_INDEX,
            LOG_DAMAGED,
            Severity.WARNING,
            places == Place.DAMAGED,
            lambda i: f"{self._entry(i)}, where the log holds no sound batch",
        )
        if not len(offsets) and self._last_batch_position > INDEX_INTERVAL_BYTES:
            detail = f"no entry for a log of {end.end} bytes: it is read from its start"
            yield IndexFinding(OFFSET_INDEX, EMPTY, Severity.INFORMATION, detail)

    def _has_right_offset(self, end: HeaderTable) -> BoolArray:
        """Brokers write the last offset of the batch at the position or of all that were appended
        with it, those before 1.0 the first."""
        ends_set = self._ends.places(end, self._base_offset) == Place.BATCH
        ends_set &= self._ends.column(column.LAST_OFFSET) == self._offsets
        set_end = self._ends.column(column.POSITION)
        next_position = np.append(self._positions[1:], np.iinfo(np.int64).max)
        is_set = (set_end > self._positions) & (set_end < next_position)
        ends_set &= (set_end == self._positions) | is_set
        right: BoolArray = ends_set | self._is_first_offset
        return right

    def _entry(self, number: int) -> str:
        return f"offset {self._offsets[number]} at position {self._positions[number]}"


class TimeIndexCheck:
    """Takes the log's headers table by table, then reports what is wrong with the index.

    Of a segment that a broker still writes to, `is_active`, the latest timestamps may be missing.
    """

    def __init__(self, data: bytes, used_bytes: int, base_offset: int, *, is_active: bool) -> None:
        self._size = len(data)
        self._is_active = is_active
        self._base_offset = base_offset
        self._times, relative = entry_columns(data[:used_bytes], TIME_ENTRY)
        self._offsets = relative + np.array([base_offset])
        # What looks like a free place can be an entry of the time 0.
        self._may_have_zero = used_bytes < len(data)
        columns = (column.LAST_OFFSET, column.MAGIC, column.MAX_TIMESTAMP, column.RECORDS_COUNT)
        self._batches = OffsetLookup(self._offsets, columns)

    def add(self, headers: HeaderTable) -> None:
        """Hold the entries against the next batches."""
        self._batches.add(headers)

    def findings(self, end: HeaderTable) -> Iterator[IndexFinding]:
        """Yield all findings; `end` is the last table added."""
        places = self._batches.places(end, self._base_offset)
        last_offsets = self._batches.column(column.LAST_OFFSET)
        yield from size_finding(TIME_INDEX, self._size, TIME_ENTRY.size)
        yield from entry_finding(
            TIME_INDEX,
            NOT_RISING,
            Severity.ERROR,
            not_rising(self._times) | not_rising(self._offsets),
            lambda i: f"{self._entry(i)} after {self._entry(i - 1)}",
        )
        yield from entry_finding(
            TIME_INDEX,
            OFFSET,
            Severity.ERROR,
            places == Place.NOWHERE,
            lambda i: f"{self._entry(i)}, an offset of no batch",
        )
        yield from entry_finding(
            TIME_INDEX,
            INNER_OFFSET,
            Severity.INFORMATION,
            (places == Place.BATCH) & (last_offsets != self._offsets),
            lambda i: f"{self._entry(i)}, inside the batch that ends with offset {last_offsets[i]}",
        )
        yield from self._wrong_times(places)
        yield from entry_finding(
            TIME_INDEX,
            BEYOND_END,
            Severity.ERROR,
            places == Place.BEYOND,
            lambda i: f"{self._entry(i)}, the log ends with offset {end.last_offset}",
        )
        yield from entry_finding(
            TIME_INDEX,
            LOG_DAMAGED,
            Severity.WARNING,
            places == Place.DAMAGED,
            lambda i: f"{self._entry(i)}, where the log holds no sound batch",
        )
        yield from self._incomplete(end)

    def _wrong_times(self, places: LongArray) -> Iterator[IndexFinding]:
        times, batches = self._times, self._batches
        latest = batches.column(column.MAX_TIMESTAMP)
        # Entries outlive the timestamps of batches that the cleaner has emptied, and of messages
        # that were converted to format 0.
        is_emptied = (batches.column(column.MAGIC) == 2) & (
            batches.column(column.RECORDS_COUNT) == 0
        )
        is_timeless = is_emptied | (batches.column(column.MAGIC) == 0)
        is_other = (times != latest) & ~is_timeless
        is_late = batches.latest_ms_before >= times
        yield from entry_finding(
            TIME_INDEX,
            TIMESTAMP,
            Severity.ERROR,
            (places == Place.BATCH) & (is_other | is_late),
            lambda i: (
                f"{self._entry(i)}, the latest in that batch is {latest[i]}, "
                f"before it {batches.latest_ms_before[i]}"
            ),
        )

    def _incomplete(self, end: HeaderTable) -> Iterator[IndexFinding]:
        last = int(self._times[-1]) if len(self._times) else NO_VALUE
        if self._may_have_zero:
            last = max(last, 0)
        if not self._is_active and end.latest_ms > last:
            found = "nothing" if last == NO_VALUE else last
            detail = f"ends with {found}, the latest timestamp of the segment is {end.latest_ms}"
            yield IndexFinding(TIME_INDEX, INCOMPLETE, Severity.WARNING, detail)

    def _entry(self, number: int) -> str:
        return f"timestamp {self._times[number]} for offset {self._offsets[number]}"
