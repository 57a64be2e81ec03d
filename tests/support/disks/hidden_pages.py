"""A file of which some pages cannot be read, in memory: for both readers."""

import errno
import os
from collections.abc import Collection

from kafkalog.format.unreadable import UnreadableRange, UnreadableRanges
from kafkalog.storage.files.read_around import PAGE_BYTES, ReadAround

REASON = os.strerror(errno.EIO)


class FailingFile:
    """Bytes in memory as a file, read as from a disk that fails in the given pages."""

    def __init__(self, data: bytes, pages: Collection[int]) -> None:
        self.size = len(data)
        self._data = data
        self._pages = pages
        self._around = ReadAround("segment", len(data))
        self.reads: list[tuple[int, int]] = []

    @property
    def unreadable(self) -> UnreadableRanges:
        return self._around.unreadable

    def _fill(self, position: int, target: memoryview) -> None:
        end = position + len(target)
        self.reads.append((position, end))
        if any(
            page * PAGE_BYTES < end and position < (page + 1) * PAGE_BYTES for page in self._pages
        ):
            raise OSError(errno.EIO, REASON)
        target[:] = self._data[position:end]

    def read_around(self, position: int, size: int) -> bytes:
        data = bytearray(max(min(size, self.size - position), 0))
        self.read_into(position, memoryview(data))
        return bytes(data)

    def read_into(self, position: int, target: memoryview) -> None:
        self._around.read_into(position, target, self._fill)


def with_hidden_pages(data: bytes, pages: Collection[int]) -> tuple[bytes, UnreadableRanges]:
    """The bytes with zeros in those pages, and their ranges."""
    left = bytearray(data)
    hidden = UnreadableRanges()
    for page in pages:
        start = page * PAGE_BYTES
        end = min(start + PAGE_BYTES, len(data))
        left[start:end] = bytes(end - start)
        hidden.add(start, end - start, REASON)
    return bytes(left), hidden


def spans(ranges: UnreadableRanges) -> list[tuple[int, int]]:
    return [(each.position, each.end) for each in ranges]


def unreadable(*given: tuple[int, int, str]) -> UnreadableRanges:
    return UnreadableRanges(UnreadableRange(*each) for each in given)
