"""The part of a file that is in memory, as an array that kernels can walk.

Buffers come from the caller's process only, never from a memory map: a file that is cut while it
is mapped kills the process.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kafkalog.columns.jit.compiled import ByteArray, inlined_kernel, kernel, long
from kafkalog.columns.jit.integers import signed_32, varint
from kafkalog.format import batch_header as layout
from kafkalog.format.torn_batch import LEAST_RECORD_BYTES
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.files.files import InputFile
from kafkalog.wire.varints import VARINT_BYTES

SEARCH_BYTES = 1024 * 1024
_NEAR_BYTES = 16 * 1024
_LEAST_LENGTH = layout.LEAST_LENGTH[0]
_FIELDS_V0, _FIELDS_V1 = layout.LEGACY_FIELDS_START
# The codec is in the last byte of the attributes.
_CODEC_POSITION = layout.ATTRIBUTES_POSITION + 1


class Source(Protocol):
    """A file, or bytes in memory; zeros in place of bytes that are `unreadable`."""

    size: int

    @property
    def unreadable(self) -> UnreadableRanges: ...

    def read_around(self, position: int, size: int) -> bytes: ...

    def read_into(self, position: int, target: memoryview) -> None: ...


class Window(Protocol):
    """`data[: filled]` holds the file's bytes from `position` on."""

    data: ByteArray
    position: int
    filled: int
    size: int
    # Of a window over a whole file: `InputFile.identity`.
    identity: tuple[int, ...] | None

    @property
    def unreadable(self) -> UnreadableRanges:
        """What could not be read so far: there are zeros in its place."""

    def load(self, start: int, size: int) -> None:
        """Hold the file's bytes [start, start + size), as far as the file goes."""

    def read(self, position: int, size: int) -> bytes: ...

    def give_away(self) -> None:
        """Hold nothing any more, so that views of `data` are all that keeps its memory."""


class FileWindow:
    """A window that moves over a file, or over what lies before `end` in it."""

    def __init__(self, source: Source, end: int | None = None) -> None:
        self._source = source
        self.size = source.size if end is None else min(end, source.size)
        self.identity = source.identity if end is None and isinstance(source, InputFile) else None
        self.data: ByteArray = np.empty(0, dtype=np.uint8)
        self.position = 0
        self.filled = 0

    @property
    def unreadable(self) -> UnreadableRanges:
        return self._source.unreadable

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
        return self._source.read_around(position, size)

    def give_away(self) -> None:
        self.data, self.filled = np.empty(0, dtype=np.uint8), 0


class MemoryWindow:
    """A window onto a whole file that is in memory already."""

    identity: tuple[int, ...] | None = None

    def __init__(self, data: ByteArray, unreadable: UnreadableRanges | None = None) -> None:
        self.data = data
        self.unreadable = unreadable or UnreadableRanges()
        self.position = 0
        self.size = self.filled = len(data)

    def load(self, start: int, size: int) -> None:
        """All is there."""

    def read(self, position: int, size: int) -> bytes:
        return self.data[position : position + size].tobytes()

    def give_away(self) -> None:
        """The memory is the caller's, and stays."""


@kernel
def _next_candidate(data: ByteArray, begin: int, places: int, left: int) -> int:
    """Return the first index in [begin, places) where a batch could begin, -1 for none.

    `left` is how many bytes the file has from data[0] on. Offset not negative, length at least 14
    and not beyond the file, magic 0 to 2, and what `data` holds of the fields after: of format 2 a
    count that the offsets allow and a first record, of the others a key and a value that fill the
    message.
    """
    for index in range(begin, places):
        magic = data[index + layout.MAGIC_POSITION]
        if magic > 2 or data[index] > 0x7F:
            continue
        length = signed_32(data, index + layout.LENGTH_POSITION)
        end = index + layout.LOG_OVERHEAD + length
        if length < _LEAST_LENGTH or end > left:
            continue
        if magic == 2:
            if _could_be_v2(data, index, end):
                return index
        elif _could_be_message(data, index + (_FIELDS_V1 if magic == 1 else _FIELDS_V0), end):
            return index
    return -1


@inlined_kernel
def _could_be_v2(data: ByteArray, index: int, end: int) -> bool:
    start = index + layout.V2_HEADER_BYTES
    if start + VARINT_BYTES > len(data):
        return True
    last_delta = signed_32(data, index + layout.LAST_OFFSET_DELTA_POSITION)
    count = signed_32(data, index + layout.RECORDS_COUNT_POSITION)
    if last_delta < 0 or count < 0 or count > last_delta + 1:
        return False
    if count == 0 or long(data[index + _CODEC_POSITION]) & layout.COMPRESSION_BITS != 0:
        return True
    length, next_index = varint(data, start, start + VARINT_BYTES)
    return next_index > 0 and LEAST_RECORD_BYTES <= length <= end - next_index


@inlined_kernel
def _could_be_message(data: ByteArray, index: int, end: int) -> bool:
    for _ in range(2):
        start = index + layout.FIELD_LENGTH_BYTES
        if start > end:
            return False
        if start > len(data):
            return True
        index = start + max(signed_32(data, index), 0)
    return index == end


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
        # The piece of the file that is being searched, and where it begins.
        self._data: ByteArray = np.empty(0, dtype=np.uint8)
        self._searched = -SEARCH_BYTES
        # What was read near the place that was looked at last.
        self._near = b""
        self._near_position = 0

    @property
    def unreadable(self) -> UnreadableRanges:
        return self._window.unreadable

    def read(self, position: int, size: int) -> bytes:
        if size > _NEAR_BYTES // 2:
            return self._window.read(position, size)
        index = position - self._near_position
        if not 0 <= index <= len(self._near) - size:
            # Sound batches are walked by a few fields of each, and of the bytes before each.
            self._near_position = max(position - _NEAR_BYTES // 4, 0)
            self._near = self._window.read(self._near_position, _NEAR_BYTES)
            index = position - self._near_position
        return self._near[index : index + size]

    def _piece(self, position: int, size: int) -> ByteArray:
        # A copy, for kernels are compiled for writable arrays only.
        return np.frombuffer(bytearray(self.read(position, size)), dtype=np.uint8)

    def next_candidate(self, start: int, end: int) -> int | None:
        while start < end:
            if not self._searched <= start < self._searched + SEARCH_BYTES:
                # Kept, for the next search mostly begins where this one ended.
                self._searched = start
                self._data = self._piece(
                    start, SEARCH_BYTES + layout.V2_HEADER_BYTES + VARINT_BYTES
                )
            places = min(
                end - self._searched, SEARCH_BYTES, len(self._data) - layout.FIRST_BYTES + 1
            )
            left = self.size - self._searched
            found = _next_candidate(self._data, start - self._searched, places, left)
            if found >= 0:
                return self._searched + int(found)
            start = self._searched + SEARCH_BYTES
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
