"""Bytes of a file that the disk or the store did not give. Rules: docs/format.md F77 to F79."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafkalog.words import counted


@dataclass(frozen=True, slots=True, order=True)
class UnreadableRange:
    """Bytes of a file that could not be read, and why not."""

    position: int
    length: int
    reason: str

    @property
    def end(self) -> int:
        return self.position + self.length

    def __str__(self) -> str:
        last = f" to {self.end - 1}" if self.length > 1 else ""
        return f"bytes {self.position}{last} cannot be read: {self.reason}"


class UnreadableRanges:
    """The unreadable ranges of one file in the order of their positions; none touches another one
    of the same reason."""

    def __init__(self, ranges: Iterable[UnreadableRange] = ()) -> None:
        self._ranges: list[UnreadableRange] = []
        for each in ranges:
            self.add(each.position, each.length, each.reason)

    def __iter__(self) -> Iterator[UnreadableRange]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def add(self, position: int, length: int, reason: str) -> None:
        """Note that the bytes could not be read; those already noted keep their reason."""
        for start, end in self.others(position, position + length):
            self._insert(start, end, reason)

    def _insert(self, start: int, end: int, reason: str) -> None:
        # A copy, which replaces the list at once: another thread may be looking.
        ranges = self._ranges.copy()
        index = bisect_left(ranges, start, key=lambda each: each.position)
        if index < len(ranges) and ranges[index].position == end and ranges[index].reason == reason:
            end = ranges.pop(index).end
        if index and ranges[index - 1].end == start and ranges[index - 1].reason == reason:
            index -= 1
            start = ranges.pop(index).position
        ranges.insert(index, UnreadableRange(start, end - start, reason))
        self._ranges = ranges

    def within(self, start: int, end: int) -> list[UnreadableRange]:
        """Return the ranges that have bytes in [start, end)."""
        ranges = self._ranges
        if not ranges or start >= end:
            return []
        first = bisect_right(ranges, start, key=lambda each: each.end)
        return ranges[first : bisect_left(ranges, end, key=lambda each: each.position)]

    def overlap(self, start: int, end: int) -> bool:
        """Return whether some of the bytes [start, end) could not be read."""
        return bool(self.within(start, end))

    def others(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of [start, end) between the ranges, each as its start and end."""
        for each in self.within(start, end):
            if start < each.position:
                yield start, each.position
            start = each.end
        if start < end:
            yield start, end

    def moved(self, by: int) -> UnreadableRanges:
        """Return the same ranges as so many bytes further on, those before the beginning left
        out."""
        if not self._ranges:
            return self
        moved = UnreadableRanges()
        for each in self._ranges:
            start = max(each.position + by, 0)
            moved.add(start, each.end + by - start, each.reason)
        return moved

    def words(self, start: int, end: int) -> str:
        """Return what of [start, end) cannot be read, and why not."""
        first, *more = self.within(start, end)
        if not more:
            return str(first)
        size = counted(sum(each.length for each in more), "byte")
        places = counted(len(more), "range")
        return f"{first}; and {size} more in {places} up to {more[-1].end - 1}"
