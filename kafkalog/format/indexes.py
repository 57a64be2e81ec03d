"""Entries of `.index` and `.timeindex` files. Rules: docs/format.md F100 and F101."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


class OffsetEntry(NamedTuple):
    """The batch at `position` of the log file ends with `offset`."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """No batch up to the one that ends with `offset` has a later timestamp than this."""

    timestamp_ms: int
    offset: int


def write_offset_index(entries: Iterable[OffsetEntry], base_offset: int) -> bytes:
    """The bytes of an `.index` file."""
    return b"".join(
        OFFSET_ENTRY.pack(entry.offset - base_offset, entry.position) for entry in entries
    )


def write_time_index(entries: Iterable[TimeEntry], base_offset: int) -> bytes:
    """The bytes of a `.timeindex` file."""
    return b"".join(
        TIME_ENTRY.pack(entry.timestamp_ms, entry.offset - base_offset) for entry in entries
    )
