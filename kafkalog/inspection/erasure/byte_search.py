"""Texts in columns of bytes: one search through all bytes of a column, in place of one per row.

What is looked for is rare, so that a search through a few MiB mostly ends without a match.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import binaries
from kafkalog.columns.jit.compiled import BoolArray

# With more matches in a column, a search per row is faster.
_MOST_MATCHES = 1000


class ByteColumn:
    """A column of bytes in which several texts are looked for."""

    def __init__(self, column: pa.Array) -> None:
        self._column = column
        data, self._ends, self._is_present = binaries(column)
        self._start = int(self._ends[0]) if len(column) else 0
        self._bytes = data[self._start : int(self._ends[-1])].tobytes() if len(column) else b""

    def with_text(self, text: bytes) -> BoolArray:
        """Return which rows have a text, which is not empty, somewhere in them: bool, one for
        each."""
        found = np.zeros(len(self._column), dtype=np.bool_)
        if not text:
            return self._is_present.copy()
        matches = 0
        place = self._bytes.find(text)
        while place >= 0:
            row = int(np.searchsorted(self._ends, self._start + place, side="right")) - 1
            end = int(self._ends[row + 1]) - self._start
            if place + len(text) <= end:
                found[row] = True
                place = end
            else:
                # It begins in one row and ends in another.
                place += 1
            matches += 1
            if matches > _MOST_MATCHES:
                column = self._column.cast(pa.binary())
                mask = pc.fill_null(pc.match_substring(column, text), False)
                by_row: BoolArray = mask.to_numpy(zero_copy_only=False)
                return by_row
            place = self._bytes.find(text, place)
        return found & self._is_present
