"""The files `.index`, `.timeindex` and `.txnindex`, read and written. Rules: docs/format.md F100,
F101, F103 and F104.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from kafkalog.errors import CorruptDataError

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
TRANSACTION_ENTRY = struct.Struct(">hqqqq")
TRANSACTION_INDEX_VERSION = 0


class OffsetEntry(NamedTuple):
    """The batch at `position` of the log file ends with `offset`."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """No batch up to the one that ends with `offset` has a later timestamp than this."""

    timestamp_ms: int
    offset: int


class AbortedTransaction(NamedTuple):
    """A transaction of the partition that was aborted by the marker at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


_Entry = TypeVar("_Entry", OffsetEntry, TimeEntry)


@dataclass(frozen=True, slots=True)
class Index(Generic[_Entry]):
    """An index file: its entries and the zero bytes after them, which a broker that was not
    stopped cleanly leaves of the file's preallocated size."""

    entries: list[_Entry]
    zero_bytes: int = 0


def read_offset_index(data: bytes, base_offset: int) -> Index[OffsetEntry]:
    """Return an `.index` file. Raises CorruptDataError where no whole number of entries is in
    it."""
    entries = list(offset_entries(data, base_offset))
    return Index(entries, len(data) - len(entries) * OFFSET_ENTRY.size)


def offset_entries(data: bytes, base_offset: int) -> Iterator[OffsetEntry]:
    """Yield the entries of the same, one after the other. Raises as `read_offset_index` does."""
    for relative, position in OFFSET_ENTRY.iter_unpack(_used(data, OFFSET_ENTRY.size)):
        yield OffsetEntry(base_offset + relative, position)


def read_time_index(data: bytes, base_offset: int) -> Index[TimeEntry]:
    """Return a `.timeindex` file. Raises CorruptDataError as `read_offset_index` does."""
    entries = list(time_entries(data, base_offset))
    return Index(entries, len(data) - len(entries) * TIME_ENTRY.size)


def time_entries(data: bytes, base_offset: int) -> Iterator[TimeEntry]:
    """Yield the entries of the same, one after the other. Raises as `read_offset_index` does."""
    for timestamp_ms, relative in TIME_ENTRY.iter_unpack(_used(data, TIME_ENTRY.size)):
        yield TimeEntry(timestamp_ms, base_offset + relative)


def read_transaction_index(data: bytes) -> list[AbortedTransaction]:
    """Return a `.txnindex` file. Raises CorruptDataError for part of an entry or an unknown
    version."""
    return list(transaction_entries(data))


def transaction_entries(data: bytes) -> Iterator[AbortedTransaction]:
    """Yield the entries of the same, one after the other. Raises as `read_transaction_index`
    does."""
    _check_whole(data, TRANSACTION_ENTRY.size)
    for number, (version, *fields) in enumerate(TRANSACTION_ENTRY.iter_unpack(data)):
        if version != TRANSACTION_INDEX_VERSION:
            detail = f"version {version} of an aborted transaction, known is 0"
            raise CorruptDataError("version", detail, position=number * TRANSACTION_ENTRY.size)
        yield AbortedTransaction(*fields)


def write_offset_index(
    entries: Iterable[OffsetEntry], base_offset: int, zero_bytes: int = 0
) -> bytes:
    """Return the bytes of an `.index` file."""
    packed = (OFFSET_ENTRY.pack(entry.offset - base_offset, entry.position) for entry in entries)
    return b"".join(packed) + bytes(zero_bytes)


def write_time_index(entries: Iterable[TimeEntry], base_offset: int, zero_bytes: int = 0) -> bytes:
    """Return the bytes of a `.timeindex` file."""
    packed = (TIME_ENTRY.pack(entry.timestamp_ms, entry.offset - base_offset) for entry in entries)
    return b"".join(packed) + bytes(zero_bytes)


def write_transaction_index(entries: Iterable[AbortedTransaction]) -> bytes:
    """Return the bytes of a `.txnindex` file."""
    return b"".join(TRANSACTION_ENTRY.pack(TRANSACTION_INDEX_VERSION, *entry) for entry in entries)


def _check_whole(data: bytes, entry_bytes: int) -> None:
    odd = len(data) % entry_bytes
    if odd:
        detail = f"{len(data)} bytes are not a whole number of entries of {entry_bytes}"
        raise CorruptDataError("truncated", detail, position=len(data) - odd)


def _used(data: bytes, entry_bytes: int) -> memoryview:
    _check_whole(data, entry_bytes)
    return memoryview(data)[: used_bytes(data, entry_bytes)]


def whole_entries(data: bytes, entry: struct.Struct) -> bytes:
    """Return the bytes without the part of an entry that may be at their end."""
    return data[: len(data) // entry.size * entry.size]


def used_bytes(data: bytes, entry_bytes: int) -> int:
    """Return the bytes of all entries up to the last that is not nothing but zeros (F103); all
    bytes where the file ends inside that entry."""
    return min(-(-len(data.rstrip(b"\0")) // entry_bytes) * entry_bytes, len(data))
