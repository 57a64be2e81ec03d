"""The check of an `.index` file against the log's batches. Rules: docs/format.md F130 and F131."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import is_wrapper
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.faults import Severity
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.format.side_files.indexes import OFFSET_ENTRY
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
    LOG_DAMAGED,
    NOT_RISING,
    OFFSET,
    WRONG_POSITION,
    IndexFinding,
    entry_finding,
    not_rising,
    size_finding,
)

OFFSET_INDEX = ".index"


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
