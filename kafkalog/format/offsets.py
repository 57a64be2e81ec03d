"""Offsets: the largest one, ranges of them, and those that the next batch of a segment may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkalog.format.batch_header import BatchHeader

LARGEST_OFFSET = 2**63 - 1
# A segment's indexes hold offsets relative to its name as signed 32-bit integers.
MAX_RELATIVE_OFFSET = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """Offsets that the next batch may have: from `expected` up to, not including, `limit`."""

    expected: int
    limit: int

    def hold(self, header: BatchHeader) -> bool:
        """Return whether all offsets of a batch lie within."""
        return self.expected <= header.base_offset <= header.last_offset < self.limit


def offset_bounds(base_offset: int | None, next_base_offset: int | None) -> Bounds:
    """Return the offsets that batches of a segment can have, by its name and the next one's."""
    if base_offset is None:
        return Bounds(0, LARGEST_OFFSET)
    limit = min(base_offset + MAX_RELATIVE_OFFSET + 1, LARGEST_OFFSET)
    if next_base_offset is not None:
        limit = min(limit, next_base_offset)
    return Bounds(base_offset, limit)


class OffsetSpan(NamedTuple):
    """Offsets [start, end)."""

    start: int
    end: int


def add_offsets(spans: list[OffsetSpan], first: int, last: int) -> None:
    """Add the offsets from `first` to `last` to spans that begin before them."""
    if spans and first <= spans[-1].end:
        start = min(spans[-1].start, first)
        spans[-1] = OffsetSpan(start, max(spans[-1].end, last + 1))
    else:
        spans.append(OffsetSpan(first, last + 1))


def merged(spans: Sequence[OffsetSpan]) -> list[OffsetSpan]:
    """Return the same offsets in order, in as few spans as possible."""
    joined: list[OffsetSpan] = []
    for span in sorted(spans):
        if span.start < span.end:
            add_offsets(joined, span.start, span.end - 1)
    return joined


def subtract(whole: Sequence[OffsetSpan], taken: Sequence[OffsetSpan]) -> list[OffsetSpan]:
    """Return the offsets of `whole` that are not in `taken`."""
    left = []
    holes = merged(taken)
    first = 0
    for start, end in merged(whole):
        position = start
        while first < len(holes) and holes[first].end <= start:
            first += 1
        for number in range(first, len(holes)):
            hole = holes[number]
            if hole.start >= end:
                break
            if hole.start > position:
                left.append(OffsetSpan(position, hole.start))
            position = hole.end
            first = number
        if position < end:
            left.append(OffsetSpan(position, end))
    return left
