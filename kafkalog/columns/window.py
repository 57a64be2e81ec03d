"""The part of a file that is in memory, as an array that kernels can walk.

Buffers come from the caller's process only, never from a memory map: a file that is cut while it
is mapped kills the process.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kafkalog.columns.compiled import ByteArray, kernel
from kafkalog.columns.integers import signed_32
from kafkalog.format.batch_header import (
    FIRST_BYTES,
    LEAST_LENGTH,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    V2_HEADER_BYTES,
)

SEARCH_BYTES = 1024 * 1024
_LEAST_LENGTH = LEAST_LENGTH[0]


class Source(Protocol):
    """A file, or bytes in memory."""

    size: int

    def read(self, position: int, size: int) -> bytes: ...

    def read_into(self, position: int, target: memoryview) -> None: ...


class Window(Protocol):
    """`data[: filled]` holds the file's bytes from `position` on."""

    data: ByteArray
    position: int
    filled: int
    size: int

    def load(self, start: int, size: int) -> None:
        """Hold the file's bytes [start, start + size), as far as the file goes."""

    def read(self, position: int, size: int) -> bytes: ...


class FileWindow:
    """A window that moves over a file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.size = source.size
        self.data: ByteArray = np.empty(0, dtype=np.uint8)
        self.position = 0
        self.filled = 0

    def load(self, start: int, size: int) -> None:
        size = min(size, self.size - start)
        data = self.data if size <= len(self.data) else np.empty(size, dtype=np.uint8)
        kept = 0
        if self.position <= start < self.position + self.filled:
            kept = min(self.position + self.filled - start, size)
            index = start - self.position
            data[:kept] = self.data[index : index + kept]
        if kept < size:
            self._source.read_into(start + kept, data.data[kept:size])
        self.data, self.position, self.filled = data, start, size

    def read(self, position: int, size: int) -> bytes:
        return self._source.read(position, size)


class MemoryWindow:
    """A window onto a whole file that is in memory already."""

    def __init__(self, data: ByteArray) -> None:
        self.data = data
        self.position = 0
        self.size = self.filled = len(data)

    def load(self, start: int, size: int) -> None:
        """All is there."""

    def read(self, position: int, size: int) -> bytes:
        return self.data[position : position + size].tobytes()


@kernel
def _next_candidate(data: ByteArray, places: int, left: int) -> int:
    """The first index below `places` where a batch could begin, -1 for none.

    `left` is how many bytes the file has from data[0] on. Offset not negative, length at least 14
    and not beyond the file, magic 0 to 2; of format 2 a count that the offsets allow.
    """
    for index in range(places):
        magic = data[index + MAGIC_POSITION]
        if magic > 2 or data[index] > 0x7F:
            continue
        length = signed_32(data, index + 8)
        if length < _LEAST_LENGTH or index + LOG_OVERHEAD + length > left:
            continue
        if magic == 2 and index + V2_HEADER_BYTES <= len(data):
            last_delta = signed_32(data, index + 23)
            count = signed_32(data, index + 57)
            if last_delta < 0 or count < 0 or count > last_delta + 1:
                continue
        return index
    return -1


@kernel
def _zero_run(data: ByteArray) -> int:
    for index in range(len(data)):
        if data[index] != 0:
            return index
    return len(data)


class WindowBytes:
    """A file as `kafkalog.format.resync` wants it; searched by kernels, a piece at a time."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self.size = window.size

    def read(self, position: int, size: int) -> bytes:
        return self._window.read(position, size)

    def _piece(self, position: int, size: int) -> ByteArray:
        # A copy, for kernels are compiled for writable arrays only.
        return np.frombuffer(bytearray(self.read(position, size)), dtype=np.uint8)

    def next_candidate(self, start: int, end: int) -> int | None:
        while start < end:
            places = min(SEARCH_BYTES, end - start)
            piece = self._piece(start, places + V2_HEADER_BYTES - 1)
            places = min(places, max(len(piece) - FIRST_BYTES + 1, 0))
            found = _next_candidate(piece, places, self.size - start)
            if found >= 0:
                return start + int(found)
            start += SEARCH_BYTES
        return None

    def zero_run(self, start: int, end: int) -> int:
        position = start
        while position < end:
            piece = self._piece(position, min(SEARCH_BYTES, end - position))
            zeros = int(_zero_run(piece))
            position += zeros
            if zeros < len(piece):
                break
        return position - start
