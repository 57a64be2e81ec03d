"""Many messages of one type and version at once: field by field, each of all messages together.

The results are those of `message_reader`, which reads one message and explains what is wrong with
it. What this does not read as a whole, such as lengths of several bytes, is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.messages.schema import Message, SchemaField, Values
from kafkalog.messages.value_types import FIXED_WIDTH, LONGEST_STRING, UUID_BYTES, uuid_text
from kafkalog.wire.java_text import decoded

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]
# A vector of values, where each message goes on, and which are read.
_Column = tuple[list[Any], Longs, Bools]
_Reader = Callable[["_Data", Longs, Longs], _Column]
# Values that look beyond the end find zeros, and are found out by their position.
_MARGIN = 64
# A byte below it is a whole length or tag.
_ONE_BYTE = 0x80
_MOST_TAGS = 16
_TYPES = {
    "b": "i1",
    "?": "?",
    "h": ">i2",
    "H": ">u2",
    "i": ">i4",
    "I": ">u4",
    "q": ">i8",
    "d": ">f8",
}
_cached_uuid_text = lru_cache(2**16)(uuid_text)


class _Data:
    """Bytes, and the same as an array with a margin."""

    def __init__(self, data: bytes) -> None:
        self.content = data
        self.array = np.frombuffer(data + bytes(_MARGIN), dtype=np.uint8)

    def bytes_at(self, positions: Longs, size: int) -> NDArray[np.uint8]:
        """Return `size` bytes from each position on, a row each."""
        last = len(self.array) - size
        places = np.clip(positions, 0, last)[:, None] + np.arange(size)
        found: NDArray[np.uint8] = self.array[places]
        return found

    def one(self, positions: Longs) -> Longs:
        """Return the byte at each position."""
        return self.bytes_at(positions, 1)[:, 0].astype(np.int64)


def read_messages(
    message: Message, version: int, data: bytes, positions: Longs, ends: Longs
) -> list[Values | None]:
    """Return the values of messages that lie between these positions and ends; None for one that
    `read_message` has to read."""
    nothing: list[Values | None] = [None] * len(positions)
    reader = _message_reader(message, version)
    if reader is None:
        return nothing
    rows, reached, is_read = reader(_Data(data), positions, ends)
    is_whole = is_read & (reached == ends)
    return [row if whole else None for row, whole in zip(rows, is_whole.tolist(), strict=True)]


@cache
def _message_reader(message: Message, version: int) -> _Reader | None:
    """Return what reads all fields, None where a field has a form that this does not know."""
    if version not in message.versions:
        return None
    is_flexible = version in message.flexible
    there = [field for field in message.fields if version in field.versions]
    readers: dict[str, _Reader] = {}
    for field in there:
        made = _field_reader(field, version, is_flexible)
        if made is None:
            return None
        readers[field.name] = made
    plain = [(field.name, readers[field.name]) for field in there if field.tag is None]
    tagged = [field for field in there if field.tag is not None]
    by_tag = {field.tag: (field.name, readers[field.name]) for field in tagged}
    names = [*(name for name, _ in plain), *(field.name for field in tagged)]

    def read(data: _Data, positions: Longs, ends: Longs) -> _Column:
        is_read = np.ones(len(positions), dtype=np.bool_)
        columns: list[Sequence[Any]] = []
        for _, reader in plain:
            values, positions, found = reader(data, positions, ends)
            is_read &= found
            columns.append(values)
        columns += [_defaults(field, version, len(positions)) for field in tagged]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        if not names:
            rows = [{} for _ in range(len(positions))]
        if is_flexible:
            positions, found = _read_tagged(data, positions, ends, by_tag, rows)
            is_read &= found
        return rows, positions, is_read

    return read


def _defaults(field: SchemaField, version: int, count: int) -> list[Any]:
    """Return the default of a field so many times; lists and dictionaries are new ones each."""
    first = field.default(version)
    if isinstance(first, list | dict):
        return [field.default(version) for _ in range(count)]
    return [first] * count


def _read_tagged(
    data: _Data,
    positions: Longs,
    ends: Longs,
    by_tag: dict[int | None, tuple[str, _Reader]],
    rows: list[dict[str, Any]],
) -> tuple[Longs, Bools]:
    """Put tagged fields into the rows; return where each message goes on, and which are read."""
    counts = data.one(positions)
    is_read = (counts <= _MOST_TAGS) & (positions < ends)
    positions = positions + 1
    for number in range(int(counts[is_read].max(initial=0))):
        chosen = np.flatnonzero(is_read & (counts > number))
        at = positions[chosen]
        tags, sizes = data.one(at), data.one(at + 1)
        starts = at + 2
        stops = starts + sizes
        is_right = (tags < _ONE_BYTE) & (sizes < _ONE_BYTE) & (stops <= ends[chosen])
        for tag in np.unique(tags[is_right]).tolist():
            if tag not in by_tag:
                continue
            name, reader = by_tag[tag]
            some = np.flatnonzero(is_right & (tags == tag))
            values, reached, found = reader(data, starts[some], stops[some])
            is_right[some] &= found & (reached == stops[some])
            for row, value in zip(chosen[some].tolist(), values, strict=True):
                rows[row][name] = value
        is_read[chosen] &= is_right
        positions[chosen] = stops
    return positions, is_read


def _field_reader(field: SchemaField, version: int, is_flexible: bool) -> _Reader | None:
    if field.struct is not None or not is_flexible:
        return None
    is_nullable = version in field.nullable
    size = UUID_BYTES if field.type == "uuid" else None
    if field.type in FIXED_WIDTH:
        size = FIXED_WIDTH[field.type].size
    if field.is_array:
        return None if size is None else _array_reader(_values_of(field.type), size, is_nullable)
    if size is not None:
        return _fixed_reader(_values_of(field.type), size)
    if field.type == "string":
        return _sized_reader(decoded, is_nullable, LONGEST_STRING)
    return _sized_reader(bytes, is_nullable, None) if field.type == "bytes" else None


def _values_of(kind: str) -> Callable[[NDArray[np.uint8]], list[Any]]:
    """Return what makes values of rows of bytes."""
    if kind == "uuid":

        def uuids(rows: NDArray[np.uint8]) -> list[Any]:
            whole = rows.tobytes()
            places = range(0, len(whole), UUID_BYTES)
            return [_cached_uuid_text(whole[place : place + UUID_BYTES]) for place in places]

        return uuids
    dtype = np.dtype(_TYPES[FIXED_WIDTH[kind].format[-1]])
    return lambda rows: np.frombuffer(rows.tobytes(), dtype=dtype).tolist()


def _fixed_reader(values_of: Callable[[NDArray[np.uint8]], list[Any]], size: int) -> _Reader:
    def read(data: _Data, positions: Longs, ends: Longs) -> _Column:
        reached = positions + size
        return values_of(data.bytes_at(positions, size)), reached, reached <= ends

    return read


def _lengths(
    data: _Data, positions: Longs, ends: Longs, is_nullable: bool
) -> tuple[Longs, Longs, Bools]:
    """Return lengths of a byte, -1 for null, where what they are of begins, and which are right."""
    lengths = data.one(positions) - 1
    is_right = (positions < ends) & (lengths < _ONE_BYTE - 1)
    return lengths, positions + 1, is_right & (is_nullable | (lengths >= 0))


def _sized_reader(make: Callable[[bytes], Any], is_nullable: bool, longest: int | None) -> _Reader:
    def read(data: _Data, positions: Longs, ends: Longs) -> _Column:
        lengths, starts, is_read = _lengths(data, positions, ends, is_nullable)
        stops = starts + lengths.clip(0)
        is_read &= stops <= ends
        if longest is not None:
            is_read &= lengths <= longest
        found = zip(
            lengths.tolist(), starts.tolist(), stops.tolist(), is_read.tolist(), strict=True
        )
        values = [
            make(data.content[start:stop]) if right and length >= 0 else None
            for length, start, stop, right in found
        ]
        return values, stops, is_read

    return read


def _array_reader(
    values_of: Callable[[NDArray[np.uint8]], list[Any]], size: int, is_nullable: bool
) -> _Reader:
    def read(data: _Data, positions: Longs, ends: Longs) -> _Column:
        counts, starts, is_read = _lengths(data, positions, ends, is_nullable)
        stops = starts + counts.clip(0) * size
        is_read &= stops <= ends
        known = np.where(is_read, counts.clip(0), 0)
        borders = np.concatenate(([0], np.cumsum(known)))
        # The number of each element in its array.
        numbers = np.arange(borders[-1]) - np.repeat(borders[:-1], known)
        flat = values_of(data.bytes_at(np.repeat(starts, known) + numbers * size, size))
        values = [
            None if count < 0 else flat[first:end]
            for count, (first, end) in zip(counts.tolist(), pairwise(borders.tolist()), strict=True)
        ]
        return values, stops, is_read

    return read


def grouped_rows(numbers: Longs) -> Iterator[tuple[int, Longs]]:
    """Yield each number and the rows that have it."""
    order = np.argsort(numbers, kind="stable")
    found, firsts = np.unique(numbers[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, firsts[1:]), strict=True)
