"""Reading a remote file around parts that its store does not give. Rule: docs/remote.md F546."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock

from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.files.unreadable_input import note_unreadable

# The size of retries in a failed range: little is lost besides what a store cannot return.
PART_BYTES = 256 * 1024
# A request can take a minute to fail: after this many failures in a row the rest of the file is
# given up.
MOST_FAILURES = 3


class PartError(Exception):
    """A range of a file that is there, from a store that answers, and cannot be fetched."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class PartReads:
    """Reads a file of `size` bytes by `fetch(position, size)`, which returns all of them or raises
    PartError. Zeros replace what cannot be fetched; it is recorded as `unreadable` and not tried
    again."""

    def __init__(self, path: str, size: int, fetch: Callable[[int, int], bytes]) -> None:
        self._path = path
        self._size = size
        self._fetch = fetch
        self._lock = Lock()
        self.unreadable = UnreadableRanges()

    def fetch(self, position: int, size: int) -> bytes:
        """Return the bytes from `position`, which the file must have. May run in a second
        thread."""
        end = position + size
        if not self.unreadable.overlap(position, end):
            try:
                return self._fetch(position, size)
            except PartError as error:
                if size <= PART_BYTES:
                    self._give_up(position, end, error.reason)
                    return bytes(size)
        data = bytearray(size)
        failures = 0
        for start, stop in self._parts(position, end):
            try:
                data[start - position : stop - position] = self._fetch(start, stop - start)
                failures = 0
            except PartError as error:
                failures += 1
                is_last = failures == MOST_FAILURES
                self._give_up(start, self._size if is_last else stop, error.reason)
        return bytes(data)

    def _parts(self, position: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of [position, end) that are not yet known as unreadable."""
        while position < end:
            stop = min((position // PART_BYTES + 1) * PART_BYTES, end)
            yield from list(self.unreadable.others(position, stop))
            position = stop

    def _give_up(self, start: int, end: int, reason: str) -> None:
        with self._lock:
            self.unreadable.add(start, end - start, reason)
        note_unreadable(self._path, start, end - start, reason)
