"""Reading a remote file in few requests without reading all of it.

A request costs its latency before the first byte, so reading through a short distance is cheaper
than a new request. A sequential reader gets more with each request, and the next one is under way
while it works.

Parts that its store does not give are read around. Rule: docs/remote.md F546.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.files.unreadable_input import note_unreadable

# The first request after a jump. At 100 MB/s these bytes take less than a millisecond, a request to
# an object store some 10 to 50: more would cost only bytes; a walk over batches of 1 MiB each reads
# 6 % of them.
LEAST_BYTES = 64 * 1024
# In two buffers, this much of a file is in memory; at 100 MB/s it is 80 ms of reading, enough that
# latency does not matter any more.
MOST_BYTES = 8 * 1024 * 1024
# Reading continues to a place this close after the last read: in the time of a request two to ten
# times as much could be read.
GAP_BYTES = 512 * 1024
# The size of retries in a failed range: little is lost besides what a store cannot return.
PART_BYTES = 256 * 1024
# A request can take a minute to fail: after this many failures in a row the rest of the file is
# given up.
MOST_FAILURES = 3


class ReadAhead:
    """Bytes of a file of `size` bytes, by `fetch(position, size)`, which returns all of them.

    `fetch` is called in one thread besides the caller's. Memory holds the bytes of two requests.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._unit = LEAST_BYTES
        self._start = 0
        self._piece = memoryview(b"")
        self._next_start = 0
        self._next: Future[bytes] | None = None
        self._executor: ThreadPoolExecutor | None = None

    def read_into(self, position: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `position`, which the file must have."""
        filled = 0
        while filled < len(target):
            index = position + filled - self._start
            if not 0 <= index < len(self._piece):
                self._move_to(position + filled, len(target) - filled)
                continue
            part = self._piece[index : index + len(target) - filled]
            target[filled : filled + len(part)] = part
            filled += len(part)

    def _move_to(self, position: int, wanted: int) -> None:
        """Have the piece begin at or before `position`."""
        end = self._start + len(self._piece)
        is_onward = end > 0 and end <= position <= end + GAP_BYTES
        ahead, self._next = self._next, None
        self._unit = min(max(2 * self._unit, wanted), MOST_BYTES) if is_onward else LEAST_BYTES
        piece = memoryview(b"")
        if ahead is not None and is_onward:
            piece, self._start = memoryview(ahead.result()), self._next_start
        if not self._start <= position < self._start + len(piece):
            size = min(max(self._unit, min(wanted, MOST_BYTES)), self._size - position)
            piece, self._start = memoryview(self._fetch(position, size)), position
        self._piece = piece
        if is_onward:
            self._begin_next()

    def _begin_next(self) -> None:
        start = self._start + len(self._piece)
        size = min(self._unit, self._size - start)
        if size > 0:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix="kafkalog-read-ahead")
            self._next_start = start
            self._next = self._executor.submit(self._fetch, start, size)

    def close(self) -> None:
        """Wait for what is under way, and forget all bytes."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
        self._piece = memoryview(b"")
        self._next = None


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
