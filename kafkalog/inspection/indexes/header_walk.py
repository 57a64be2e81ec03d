"""A segment's batch headers a table at a time, with what came before each batch, and the batches
that hold requested offsets: what the checks of indexes stand on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import is_wrapper
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.side_files.indexes import whole_entries


def entry_columns(data: bytes, entry: Struct) -> list[LongArray]:
    """Return each field of all whole entries of an index, in the order of the entry's layout."""
    kind = np.dtype([(f"f{number}", f">{code}") for number, code in enumerate(entry.format[1:])])
    entries = np.frombuffer(whole_entries(data, entry), kind)
    return [entries[field].astype(np.int64) for field in kind.names or ()]


class HeaderTable:
    """Rows of a batch table in file order, `position` to `end` of the file.

    Of every row: the last offset of the sound batches before it, their latest timestamp, and
    whether a damaged range lies just before it. `last_offset`, `latest_ms` and `ends_damaged` are
    those after the last row; without a batch so far, the last offset is one less than the base.
    """

    def __init__(self, table: LongArray, before: HeaderTable | int) -> None:
        if isinstance(before, int):
            start, last_offset, latest_ms, is_damaged = 0, before - 1, NO_VALUE, False
        else:
            start, last_offset, latest_ms = before.end, before.last_offset, before.latest_ms
            is_damaged = before.ends_damaged
        faulty = table[:, column.FAULT] != 0
        least = np.iinfo(np.int64).min
        last_offsets = _running_max(
            last_offset, np.where(faulty, least, table[:, column.LAST_OFFSET])
        )
        latest = _running_max(latest_ms, np.where(faulty, least, table[:, column.MAX_TIMESTAMP]))
        damaged = np.concatenate(([is_damaged], faulty))
        self.table = table
        self.position: int = start
        self.end: int = (
            int(table[-1, column.POSITION] + table[-1, column.SIZE]) if len(table) else start
        )
        self.last_offset_before = last_offsets[:-1]
        self.last_offset: int = int(last_offsets[-1])
        self.latest_ms_before = latest[:-1]
        self.latest_ms: int = int(latest[-1])
        self.is_behind_damage = damaged[:-1]
        self.ends_damaged: bool = bool(damaged[-1])


def _running_max(start: int, values: LongArray) -> LongArray:
    """Return the largest so far: before each value, and after the last."""
    running: LongArray = np.maximum.accumulate(np.concatenate(([start], values)))
    return running


_ENTRIES_AT_A_TIME = 64 * 1024


class EntryOrder:
    """The entries of an index by one of their fields, whatever their order in the file."""

    def __init__(self, keys: LongArray) -> None:
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def between(self, first: int, end: int) -> Iterator[LongArray]:
        """Yield the numbers of the entries whose key lies in [first, end), some at a time: all
        entries of an index can lead to one batch, and many rows of a table take much memory."""
        low, high = np.searchsorted(self._keys, (first, end)).tolist()
        for start in range(low, high, _ENTRIES_AT_A_TIME):
            yield self._order[start : min(start + _ENTRIES_AT_A_TIME, high)]


class Place(IntEnum):
    """Where in the log an entry leads."""

    BEYOND = 0  # after the last batch
    NOWHERE = 1  # not to a batch, or not to where one begins
    DAMAGED = 2  # to bytes that hold no sound batch
    BATCH = 3


class OffsetLookup:
    """For every entry the batch that holds its offset: `places`, and the given columns of the
    batch table; `latest_ms_before` is the latest timestamp in front of that batch."""

    def __init__(self, offsets: LongArray, columns: Sequence[int]) -> None:
        self._offsets = offsets
        self._order = EntryOrder(offsets)
        self._columns = {index: number for number, index in enumerate(columns)}
        self._found = np.zeros((len(offsets), len(columns)), dtype=np.int64)
        self._places = np.full(len(offsets), Place.BEYOND)
        self.latest_ms_before = np.full(len(offsets), NO_VALUE, dtype=np.int64)

    def add(self, headers: HeaderTable) -> None:
        """Look for the offsets in the next batches."""
        sound = np.flatnonzero(headers.table[:, column.FAULT] == 0)
        if not len(sound):
            return
        first = int(headers.last_offset_before[sound[0]]) + 1
        last_offsets = headers.table[sound, column.LAST_OFFSET]
        for entries in self._order.between(first, headers.last_offset + 1):
            rows = sound[np.searchsorted(last_offsets, self._offsets[entries])]
            batches = headers.table[rows]
            is_in = (batches[:, column.BASE_OFFSET] <= self._offsets[entries]) | is_wrapper(batches)
            missed = np.where(headers.is_behind_damage[rows], Place.DAMAGED, Place.NOWHERE)
            self._places[entries] = np.where(is_in, Place.BATCH, missed)
            self._found[entries] = batches[:, list(self._columns)]
            self.latest_ms_before[entries] = headers.latest_ms_before[rows]

    def places(self, end: HeaderTable, base_offset: int) -> NDArray[np.int64]:
        """Return where each entry leads; `end` is what was added last."""
        places = self._places.copy()
        places[self._offsets < base_offset] = Place.NOWHERE
        if end.ends_damaged:
            places[places == Place.BEYOND] = Place.DAMAGED
        return places

    def column(self, index: int) -> LongArray:
        """That column of the batches found."""
        values: LongArray = self._found[:, self._columns[index]]
        return values
