"""Reading a file around what a disk does not give of it: page by page, each bad page once.

Rule: docs/format.md F77.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.files.unreadable_input import note_unreadable

# Fills a buffer with a file's bytes from a position.
Fill = Callable[[int, memoryview], None]

# The unit in which systems read and cache files: disks fail in whole pages.
PAGE_BYTES = 4096

# Errors of disks, file systems and permissions. Others are failures of this process, such as too
# many open files, and not of the file.
_UNREADABLE = frozenset(
    (
        errno.EACCES,
        errno.EBADMSG,
        errno.EIO,
        errno.ELOOP,
        errno.ENODATA,
        errno.ENODEV,
        errno.ENXIO,
        errno.EOVERFLOW,
        errno.EPERM,
        errno.EREMOTEIO,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.EUCLEAN,
    )
)


def unreadable_reason(error: OSError) -> str | None:
    """Return the system's reason why something cannot be read; None for other errors."""
    return os.strerror(error.errno) if error.errno in _UNREADABLE else None


class ReadAround:
    """Reads a file of `size` bytes. Zeros replace what cannot be read; it is recorded as
    `unreadable` and not tried again."""

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._size = size
        self.unreadable = UnreadableRanges()

    def read_into(self, position: int, target: memoryview, fill: Fill) -> None:
        """Fill `target` with the bytes from `position` by `fill`, which fills a buffer from a
        position or raises OSError. It comes with each read: kept here, a method of the file that
        has this object would keep both in memory until Python looks for cycles."""
        end = position + len(target)
        for start, stop in self.unreadable.others(position, end):
            self._read(start, target[start - position : stop - position], fill)
        for hidden in self.unreadable.within(position, end):
            first, last = max(hidden.position, position), min(hidden.end, end)
            target[first - position : last - position] = bytes(last - first)

    def _read(self, position: int, target: memoryview, fill: Fill) -> None:
        if _failure(position, target, fill) is None:
            return
        run: tuple[int, int, str] | None = None
        for start, stop in _page_parts(position, position + len(target)):
            reason = _failure(start, target[start - position : stop - position], fill)
            if run is not None and reason != run[2]:
                self.give_up(*run)
                run = None
            if reason is not None:
                first = start // PAGE_BYTES * PAGE_BYTES if run is None else run[0]
                run = first, -(-stop // PAGE_BYTES) * PAGE_BYTES, reason
        if run is not None:
            self.give_up(*run)

    def give_up(self, start: int, end: int, reason: str) -> None:
        """Note that the bytes cannot be read."""
        length = min(end, self._size) - start
        self.unreadable.add(start, length, reason)
        note_unreadable(self._path, start, length, reason)


def _failure(position: int, target: memoryview, fill: Fill) -> str | None:
    """Return why a buffer cannot be filled, None where it is."""
    try:
        fill(position, target)
    except OSError as error:
        reason = unreadable_reason(error)
        if reason is None:
            raise
        return reason
    return None


def _page_parts(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the part of [start, end) in each page, as its start and end."""
    while start < end:
        stop = min((start // PAGE_BYTES + 1) * PAGE_BYTES, end)
        yield start, stop
        start = stop
