"""The check of a `.txnindex` file against the log's batches. Rules: docs/format.md F134, F926.

Headers do not distinguish an abort marker from a commit's: a marker of the producer is required.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import BoolArray, LongArray
from kafkalog.format.batch_header import CONTROL_BIT, TRANSACTIONAL_BIT
from kafkalog.format.faults import Severity
from kafkalog.format.side_files.indexes import TRANSACTION_ENTRY, TRANSACTION_INDEX_VERSION
from kafkalog.inspection.indexes.header_walk import HeaderTable, OffsetLookup, Place, entry_columns
from kafkalog.inspection.indexes.index_findings import (
    BEYOND_END,
    LOG_DAMAGED,
    MARKER,
    NOT_RISING,
    STABLE_OFFSET,
    VERSION,
    WRONG_FIRST_OFFSET,
    IndexFinding,
    entry_finding,
    not_rising,
    size_finding,
)

TRANSACTION_INDEX = ".txnindex"
_COLUMNS = (column.MAGIC, column.ATTRIBUTES, column.PRODUCER_ID, column.LEADER_EPOCH)


class TransactionIndexCheck:
    """Takes the log's headers table by table, then reports what is wrong with the index."""

    def __init__(self, data: bytes, base_offset: int) -> None:
        self._size = len(data)
        self._base_offset = base_offset
        self._versions, self._producers, self._first, self._last, self._stable = entry_columns(
            data, TRANSACTION_ENTRY
        )
        self._markers = OffsetLookup(self._last, _COLUMNS)
        self._starts = OffsetLookup(self._first, _COLUMNS)
        self._stables = OffsetLookup(self._stable, _COLUMNS)
        self._next_starts = _NextStarts(self._last, self._producers, self._stable)

    def add(self, headers: HeaderTable) -> None:
        """Hold the entries against the next batches."""
        self._markers.add(headers)
        self._starts.add(headers)
        self._stables.add(headers)
        self._next_starts.add(headers)

    def findings(self, end: HeaderTable) -> Iterator[IndexFinding]:
        """Yield all findings; `end` is the last table added."""
        known = self._versions == TRANSACTION_INDEX_VERSION
        places = self._markers.places(end, self._base_offset)
        yield from size_finding(TRANSACTION_INDEX, self._size, TRANSACTION_ENTRY.size)
        yield from entry_finding(
            TRANSACTION_INDEX,
            VERSION,
            Severity.ERROR,
            ~known,
            lambda i: f"version {self._versions[i]}, known is {TRANSACTION_INDEX_VERSION}",
        )
        yield from entry_finding(
            TRANSACTION_INDEX,
            NOT_RISING,
            Severity.ERROR,
            known & not_rising(self._last),
            lambda i: f"{self._entry(i)} after the one up to {self._last[i - 1]}",
        )
        is_marker = (places == Place.BATCH) & self._is_of_producer(self._markers, CONTROL_BIT)
        yield from entry_finding(
            TRANSACTION_INDEX,
            MARKER,
            Severity.ERROR,
            known & ((places == Place.NOWHERE) | ((places == Place.BATCH) & ~is_marker)),
            lambda i: f"{self._entry(i)}: no marker of the producer is there",
        )
        yield from self._wrong_offsets(end, known)
        yield from entry_finding(
            TRANSACTION_INDEX,
            BEYOND_END,
            Severity.ERROR,
            known & (places == Place.BEYOND),
            lambda i: f"{self._entry(i)}: the log ends with offset {end.last_offset}",
        )
        yield from entry_finding(
            TRANSACTION_INDEX,
            LOG_DAMAGED,
            Severity.WARNING,
            known & (places == Place.DAMAGED),
            lambda i: f"{self._entry(i)}: the log holds no sound batch there",
        )

    def _wrong_offsets(self, end: HeaderTable, known: BoolArray) -> Iterator[IndexFinding]:
        # The transaction may have begun in an earlier segment, and its data may be cleaned away.
        is_here = self._starts.places(end, self._base_offset) == Place.BATCH
        is_first = self._is_of_producer(self._starts, 0)
        is_behind = (self._first < 0) | (self._first >= self._last)
        yield from entry_finding(
            TRANSACTION_INDEX,
            WRONG_FIRST_OFFSET,
            Severity.ERROR,
            known & (is_behind | (is_here & ~is_first)),
            lambda i: f"{self._entry(i)}: no transaction of the producer begins there",
        )
        yield from entry_finding(
            TRANSACTION_INDEX,
            STABLE_OFFSET,
            Severity.ERROR,
            known & ((self._stable < 0) | self._is_too_late(end)),
            lambda i: f"{self._entry(i)}: a last stable offset of {self._stable[i]}",
        )

    def _is_too_late(self, end: HeaderTable) -> BoolArray:
        """Return whether the last stable offset is after the marker, and where no follower has it
        that appends several batches at once. Rule: F926."""
        places = self._stables.places(end, self._base_offset)
        epochs = [each.column(column.LEADER_EPOCH) for each in (self._stables, self._markers)]
        # The log was truncated after the marker, and another leader wrote what is there now.
        is_rewritten = (places == Place.BATCH) & (epochs[0] > epochs[1])
        # Only a log that was cleaned has no batch there: nothing says what it was.
        is_gone = (places == Place.NOWHERE) | (places == Place.DAMAGED)
        is_next = self._stable == self._next_starts.offsets
        is_behind = self._stable > self._last + 1
        too_late: BoolArray = is_behind & ~is_next & ~is_rewritten & ~is_gone
        return too_late

    def _is_of_producer(self, batches: OffsetLookup, control: int) -> BoolArray:
        attributes = batches.column(column.ATTRIBUTES)
        wanted: BoolArray = (
            (batches.column(column.MAGIC) == 2)
            & (batches.column(column.PRODUCER_ID) == self._producers)
            & (attributes & TRANSACTIONAL_BIT != 0)
            & (attributes & CONTROL_BIT == control)
        )
        return wanted

    def _entry(self, number: int) -> str:
        return (
            f"producer {self._producers[number]}, offsets {self._first[number]} to "
            f"{self._last[number]}"
        )


_NONE = np.iinfo(np.int64).max


class _NextStarts:
    """Finds, for each entry whose last stable offset is after its marker, where another producer's
    first transactional batch after the marker begins: `offsets`. Rule: F926."""

    def __init__(self, markers: LongArray, producers: LongArray, stables: LongArray) -> None:
        self.offsets = np.full(len(markers), _NONE)
        self._markers, self._producers = markers, producers
        self._left = np.flatnonzero(stables > markers + 1)

    def add(self, headers: HeaderTable) -> None:
        """Look for the batches among the next ones."""
        table = headers.table
        kinds = table[:, column.ATTRIBUTES] & (TRANSACTIONAL_BIT | CONTROL_BIT)
        is_data = (table[:, column.MAGIC] == 2) & (kinds == TRANSACTIONAL_BIT)
        rows = table[is_data & (table[:, column.FAULT] == 0)]
        if not len(rows) or not len(self._left):
            return
        producers = rows[:, column.PRODUCER_ID]
        base_offsets = rows[:, column.BASE_OFFSET]
        first = np.searchsorted(base_offsets, self._markers[self._left], side="right")
        other = _next_of_others(producers)
        # One more row each, for entries that nothing follows.
        producers, other = np.append(producers, _NONE), np.append(other, len(rows))
        is_own = producers[first] == self._producers[self._left]
        found = np.where(is_own, other[first], first)
        is_found = found < len(rows)
        self.offsets[self._left[is_found]] = base_offsets[found[is_found]]
        self._left = self._left[~is_found]


def _next_of_others(producers: LongArray) -> LongArray:
    """Return for each row the next one of another producer, the number of rows where none is."""
    changes = np.append(np.flatnonzero(np.diff(producers)) + 1, len(producers))
    found: LongArray = changes[np.searchsorted(changes, np.arange(len(producers)), side="right")]
    return found
