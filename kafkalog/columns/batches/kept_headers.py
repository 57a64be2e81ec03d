"""Batch headers that walks along large batches have read, kept for other walks over the same files:
a page about a cluster needs several. Bytes are kept, no judgement about them, and of a file that
has not changed since. Rule: docs/report.md F1440.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kafkalog.columns.batches.window import Window
from kafkalog.columns.jit.compiled import ByteArray, LongArray

# With the positions. Walks come along all files in turn: to keep the first ones helps most.
_MOST_BYTES = 32 * 1024 * 1024
# Of a file, as it is now, and where the first batch begins.
_Place = tuple[tuple[int, ...], int]


class LargeBatches(NamedTuple):
    """Batches that follow each other: their headers, one after another, and where each begins; and
    where the last one ends."""

    headers: ByteArray
    positions: LongArray
    end: int


class _Kept:
    def __init__(self) -> None:
        self.batches: dict[_Place, LargeBatches] = {}
        self.size = 0


_kept: _Kept | None = None


@contextmanager
def headers_kept() -> Iterator[None]:
    """Keep the headers that are read meanwhile, up to 32 MiB, in this process and for its forks."""
    global _kept
    before, _kept = _kept, _Kept()
    try:
        yield
    finally:
        _kept = before


def kept_at(window: Window, position: int, most: int) -> LargeBatches | None:
    """Return the batches that are kept from a position on, `most` of them at most."""
    if _kept is None or window.identity is None:
        return None
    found = _kept.batches.get((window.identity, position))
    return found if found is not None and len(found.positions) <= most else None


def keep(window: Window, found: LargeBatches) -> None:
    """Keep these batches of a file, if there is room."""
    size = found.headers.nbytes + found.positions.nbytes
    if _kept is None or window.identity is None or window.unreadable:
        return
    if _kept.size + size <= _MOST_BYTES:
        _kept.batches[window.identity, int(found.positions[0])] = found
        _kept.size += size
