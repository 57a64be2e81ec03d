"""Texts in columns of bytes, and in the payloads of batches: one search through all bytes that lie
together, in place of one per row. What is looked for is rare.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrays import binaries
from kafkalog.columns.jit.compiled import (
    BoolArray,
    ByteArray,
    IntArray,
    LongArray,
    inlined_kernel,
    kernel,
)

# So much is compared without a branch.
_BLOCK_BYTES = 64
_LAST_ASCII = 127


class ByteRows:
    """Rows of bytes in which several texts are looked for: row i is data[begins[i]:ends[i]], and
    the rows lie one after another."""

    def __init__(
        self, data: ByteArray, begins: LongArray | IntArray, ends: LongArray | IntArray
    ) -> None:
        # Kernels are compiled for arrays that can be written, or for others: Arrow's cannot.
        self._data = data.view()
        self._data.flags.writeable = False
        self._begins = np.ascontiguousarray(begins, dtype=np.int64)
        self._ends = np.ascontiguousarray(ends, dtype=np.int64)

    def with_text(self, text: bytes) -> BoolArray:
        """Return which rows have a text somewhere in them: bool, one for each."""
        found = np.full(len(self._begins), not text)
        if text and len(found):
            _mark_rows(
                self._data, self._begins, self._ends, np.frombuffer(text, dtype=np.uint8), found
            )
        return found


class ByteColumn:
    """A column of bytes in which several texts are looked for."""

    def __init__(self, column: pa.Array) -> None:
        data, borders, self._is_present = binaries(column)
        self._rows = ByteRows(data, borders[:-1], borders[1:])

    def with_text(self, text: bytes) -> BoolArray:
        """Return which rows have a text somewhere in them: bool, one for each."""
        return self._rows.with_text(text) & self._is_present


@kernel
def mark_plain_rows(
    data: ByteArray, borders: IntArray | LongArray, starts: BoolArray, plain: BoolArray
) -> bool:
    """Set `plain` for each row data[borders[i]:borders[i + 1]] that begins with one of the bytes in
    `starts`, a flag for each of 256, and that has no zero byte. Return whether all bytes are ASCII.
    """
    is_ascii = True
    for row in range(len(borders) - 1):
        begin, end = borders[row], borders[row + 1]
        if begin == end:
            continue
        has_zero, has_other = False, False
        content = data[begin:end]
        for place in range(len(content)):
            has_zero |= content[place] == 0
            has_other |= content[place] > _LAST_ASCII
        is_ascii &= not has_other
        plain[row] = starts[content[0]] and not has_zero
    return is_ascii


@kernel
def _mark_rows(
    data: ByteArray, begins: LongArray, ends: LongArray, text: ByteArray, found: BoolArray
) -> None:
    """Set `found` for each row that has the text."""
    row, position = 0, begins[0]
    while True:
        place = _next_place(data, position, ends[-1], text)
        if place < 0:
            return
        while row < len(ends) and ends[row] < place + len(text):
            row += 1
        if row == len(ends):
            return
        # Otherwise it begins in one row, or before all, and ends in another.
        if begins[row] <= place:
            found[row] = True
            position = ends[row]
        else:
            position = place + 1


@inlined_kernel
def _next_place(data: ByteArray, begin: int, end: int, text: ByteArray) -> int:
    """Return where the text first is in data[begin:end], -1 if it is not."""
    middle, last = len(text) // 2, len(text) - 1
    while begin < end - last:
        stop = min(begin + _BLOCK_BYTES, end - last)
        # Three of the text's bytes at their places are rare: machine code compares many at once.
        firsts, middles = data[begin:stop], data[begin + middle : stop + middle]
        lasts = data[begin + last : stop + last]
        is_possible = False
        for index in range(len(firsts)):
            is_possible |= (
                (firsts[index] == text[0])
                & (middles[index] == text[middle])
                & (lasts[index] == text[last])
            )
        if is_possible:
            for place in range(begin, stop):
                if _is_at(data, place, text):
                    return place
        begin = stop
    return -1


@inlined_kernel
def _is_at(data: ByteArray, place: int, text: ByteArray) -> bool:
    same = 0
    while same < len(text) and data[place + same] == text[same]:
        same += 1
    return same == len(text)
