"""The bytes of a segment as the search for batches wants them."""

from __future__ import annotations

from typing import Protocol

from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.wire import BytesLike


class SegmentBytes(Protocol):
    """The bytes of one file, in memory or not; zeros in place of those that are `unreadable`."""

    size: int

    @property
    def unreadable(self) -> UnreadableRanges:
        """What could not be read of the bytes that have been wanted so far."""

    def read(self, position: int, size: int) -> BytesLike:
        """Return the bytes from `position`, fewer than `size` only at the end of the file."""

    def next_candidate(self, start: int, end: int) -> int | None:
        """Return the first position in [start, end) where a batch could begin, judged by length,
        magic and offsets that are none at all."""

    def zero_run(self, start: int, end: int) -> int:
        """Return how many zero bytes follow each other from `start`, `end` at most."""
