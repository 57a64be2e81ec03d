"""The indexes of a segment from the table of its batches, as a broker that appends them adds
entries. Rules: docs/format.md F100 and F101.

`format/segment_writer.py` does the same for batches that are in memory.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import LongArray, kernel
from kafkalog.errors import UnsupportedFormatError
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.format.offsets import MAX_RELATIVE_OFFSET
from kafkalog.format.segment_writer import INDEX_INTERVAL_BYTES
from kafkalog.format.side_files.indexes import TimeEntry, write_time_index

# The entries of format/side_files/indexes.py, as many at once.
_OFFSET_ENTRY, _TIME_ENTRY = np.dtype(">i4,>i4"), np.dtype(">i8,>i4")
# What is known after some batches: the bytes since the last entry, the latest time and the offset
# it is at, the time of the last entry.
_SINCE, _LATEST_MS, _LATEST_OFFSET, _ENTRY_MS = range(4)


@kernel
def _find_entries(rows: LongArray, state: LongArray, places: LongArray, times: LongArray) -> int:
    """Set which rows get an entry of the offset index, and of the time index time and offset, -1
    for none; return how many."""
    count = 0
    for row in range(len(rows)):
        timestamp_ms = rows[row, column.MAX_TIMESTAMP]
        if timestamp_ms > state[_LATEST_MS]:
            state[_LATEST_MS] = timestamp_ms
            state[_LATEST_OFFSET] = rows[row, column.LAST_OFFSET]
        if state[_SINCE] > INDEX_INTERVAL_BYTES:
            places[count] = row
            times[count, 0] = NO_VALUE
            if state[_LATEST_MS] > state[_ENTRY_MS]:
                times[count, 0] = state[_ENTRY_MS] = state[_LATEST_MS]
                times[count, 1] = state[_LATEST_OFFSET]
            count += 1
            state[_SINCE] = 0
        state[_SINCE] += rows[row, column.SIZE]
    return count


class AppendedIndexes:
    """The offset and the time index of a segment, to which batches are added in their order."""

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._state = np.array([0, NO_VALUE, base_offset, NO_VALUE], dtype=np.int64)
        self._offsets: list[bytes] = []
        self._times: list[bytes] = []

    def add(self, rows: LongArray, positions: LongArray) -> None:
        """Add rows of a batch table, whose batches are at these positions of the segment. Raises
        UnsupportedFormatError for more than a segment can have."""
        places = np.empty(len(rows), dtype=np.int64)
        times = np.empty((len(rows), 2), dtype=np.int64)
        count = _find_entries(np.ascontiguousarray(rows), self._state, places, times)
        chosen, times = places[:count], times[:count]
        times = times[times[:, 0] != NO_VALUE]
        offsets = rows[chosen, column.LAST_OFFSET] - self._base_offset
        self._offsets.append(_packed(_OFFSET_ENTRY, offsets, positions[chosen]))
        self._times.append(_packed(_TIME_ENTRY, times[:, 0], times[:, 1] - self._base_offset))

    @property
    def index(self) -> bytes:
        """The bytes of the `.index` file."""
        return b"".join(self._offsets)

    @property
    def timeindex(self) -> bytes:
        """The bytes of the `.timeindex` file, which ends with the latest time of all."""
        _, latest_ms, latest_offset, entry_ms = self._state.tolist()
        last = [TimeEntry(latest_ms, latest_offset)] if latest_ms > entry_ms else []
        return b"".join([*self._times, write_time_index(last, self._base_offset)])


def _packed(entry: np.dtype[np.void], first: LongArray, second: LongArray) -> bytes:
    """Return entries of two columns. The second has 32 bits, and so has the first of the offset
    index."""
    entries = np.empty(len(first), dtype=entry)
    for name, values in zip(("f0", "f1"), (first, second), strict=True):
        entries[name] = values
        if not np.array_equal(entries[name], values):
            raise UnsupportedFormatError(
                f"an index has no room for {values.max():,}, only for positions and relative "
                f"offsets up to {MAX_RELATIVE_OFFSET:,}: the log file is larger than a segment"
            )
    return entries.tobytes()
