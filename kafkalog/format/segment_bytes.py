"""The bytes of a segment as the search for batches wants them."""

from __future__ import annotations

import re
from typing import Protocol

from kafkalog.format.batch_header import FIRST_BYTES
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.wire import BytesLike

# Offset not negative, length at least 14, magic 0 to 2.
_COULD_BEGIN = re.compile(
    rb"(?=[\x00-\x7f].{7}(?!\x00\x00\x00[\x00-\x0d])[\x00-\x7f].{7}[\x00-\x02])", re.DOTALL
)


class SegmentBytes(Protocol):
    """The bytes of one file, in memory or not; zeros in place of those that are `unreadable`."""

    size: int

    @property
    def unreadable(self) -> UnreadableRanges:
        """What could not be read of the bytes that have been wanted so far."""

    def read(self, position: int, size: int) -> BytesLike:
        """The bytes from `position`, fewer than `size` only at the end of the file."""

    def next_candidate(self, start: int, end: int) -> int | None:
        """The first position in [start, end) where a batch could begin, judged by length, magic
        and offsets that are none at all."""

    def zero_run(self, start: int, end: int) -> int:
        """How many zero bytes follow each other from `start`, `end` at most."""


class BytesInMemory:
    """A whole file as one bytes object."""

    def __init__(self, data: bytes, unreadable: UnreadableRanges) -> None:
        self._data = data
        self.size = len(data)
        self.unreadable = unreadable

    def read(self, position: int, size: int) -> BytesLike:
        return self._data[position : position + size]

    def next_candidate(self, start: int, end: int) -> int | None:
        stop = min(end + FIRST_BYTES - 1, self.size)
        match = _COULD_BEGIN.search(self._data, start, stop)
        return match.start() if match else None

    def zero_run(self, start: int, end: int) -> int:
        stretch = self._data[start:end]
        return len(stretch) - len(stretch.lstrip(b"\0"))
