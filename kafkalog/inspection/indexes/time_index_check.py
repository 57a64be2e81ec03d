"""The check of a `.timeindex` file against the log's batches. Rules: docs/format.md F132 and
F133."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.faults import Severity
from kafkalog.format.side_files.indexes import TIME_ENTRY
from kafkalog.inspection.indexes.header_walk import HeaderTable, OffsetLookup, Place, entry_columns
from kafkalog.inspection.indexes.index_findings import (
    BEYOND_END,
    INCOMPLETE,
    INNER_OFFSET,
    LOG_DAMAGED,
    NOT_RISING,
    OFFSET,
    TIMESTAMP,
    IndexFinding,
    entry_finding,
    not_rising,
    size_finding,
)

TIME_INDEX = ".timeindex"


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
