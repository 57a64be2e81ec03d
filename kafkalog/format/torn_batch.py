"""Where the values lie in a batch whose end is missing: batches in them are not the log's own.

Rule: docs/format.md F66.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafkalog.format.batch_header import (
    FIELD_LENGTH_BYTES,
    LEGACY_FIELDS_START,
    V2_HEADER_BYTES,
    BatchHeader,
)
from kafkalog.wire import BytesLike
from kafkalog.wire.varints import VARLONG_BYTES, VarintError, read_varint, read_varlong

# Attributes, two deltas, two lengths and the count of headers.
LEAST_RECORD_BYTES = 6

_Read = Callable[[int, int], BytesLike]


def value_ranges(read: _Read, position: int, header: BatchHeader) -> Iterator[tuple[int, int]]:
    """Begin and end of the values in the batch at `position`, as far as its fields make sense; the
    last may reach beyond the file's end. None of a compressed batch."""
    if header.compression_id:
        return
    if header.magic < 2:
        yield _message_value(read, position + LEGACY_FIELDS_START[header.magic])
        return
    cursor = position + V2_HEADER_BYTES
    for _ in range(header.records_count):
        try:
            value, cursor = _record_value(read, cursor, position + header.size)
        except VarintError:
            return
        yield value


def _message_value(read: _Read, cursor: int) -> tuple[int, int]:
    for _ in ("key", "value"):
        size = int.from_bytes(read(cursor, FIELD_LENGTH_BYTES), "big", signed=True)
        begin = cursor + FIELD_LENGTH_BYTES
        cursor = begin + max(size, 0)
    return begin, cursor


def _record_value(read: _Read, start: int, batch_end: int) -> tuple[tuple[int, int], int]:
    """Return the value of the record at `start`, and where the next one begins. Raises
    VarintError."""
    length, cursor = _varint(read, start)
    end = cursor + length
    if length < LEAST_RECORD_BYTES or end > batch_end:
        raise VarintError("no length of a record")
    head = read(cursor + 1, VARLONG_BYTES)
    cursor += 1 + read_varlong(head, 0, len(head))[1]
    _, cursor = _varint(read, cursor)
    for _ in ("key", "value"):
        size, begin = _varint(read, cursor)
        cursor = begin + max(size, 0)
        if cursor >= end:
            raise VarintError("a field that its record does not hold")
    return (begin, cursor), end


def _varint(read: _Read, position: int) -> tuple[int, int]:
    data = read(position, VARLONG_BYTES)
    value, used = read_varint(data, 0, len(data))
    return value, position + used


class TornBatch:
    """A batch whose end is missing, and the values in it, looked up as far as they are needed."""

    def __init__(self, header: BatchHeader, values: Iterator[tuple[int, int]]) -> None:
        self._next_offset = header.last_offset + 1
        self._values = values
        self._value = (0, 0)

    def holds(self, position: int, header: BatchHeader) -> bool:
        """Return whether a batch lies in a value and does not follow on the torn one. Call it in
        the order of positions."""
        while self._value[1] <= position:
            value = next(self._values, None)
            if value is None:
                return False
            self._value = value
        begin, end = self._value
        is_inside = begin <= position and position + header.size <= end
        return is_inside and header.base_offset != self._next_offset
