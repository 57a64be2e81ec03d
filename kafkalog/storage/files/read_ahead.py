"""Reading a remote file in few requests without reading all of it.

A request costs its latency before the first byte, so reading through a short distance is cheaper
than a new request. A sequential reader gets more with each request, and the next one is under way
while it works.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

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
