"""Allocates Arrow's memory for the columns that kernels fill."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.columns.records.record_arrays import (
    HEADERS,
    NOT_ASCII,
    NULL_HEADER_VALUES,
    NULL_HEADERS,
    NULL_KEYS,
    NULL_TIMESTAMPS,
    NULL_VALUES,
    RECORDS,
    RecordArrays,
    Wanted,
)
from kafkalog.columns.records.record_metadata import MESSAGE_CRC
from kafkalog.format.records import MOST_HEADERS
from kafkalog.wire.java_text import decoded

_LEAST_HEADER_BYTES = 2
_KEYS_AT_A_TIME = 16 * 1024
_INT64, _INT32, _TIMESTAMP = pa.int64(), pa.int32(), pa.timestamp("us", tz="UTC")
_BINARY = pa.binary()
_NO_BYTES = np.zeros(1, dtype=np.uint8)
_INDEX = {name: index for index, name in enumerate(RecordArrays._fields)}


# What the length of an array depends on.
_RECORDS, _RECORD_BITS, _HEADERS, _HEADER_BITS, _PAYLOAD_BYTES = range(5)
_MOSTLY_UNUSED = {_HEADERS, _PAYLOAD_BYTES}
_LEADING_ZERO, _ALL_SET = 0, 255
_ALIGNMENT = 64
_END_BYTES = np.dtype(np.int32).itemsize


class _Array(NamedTuple):
    column: str  # the column that it is for, "" if always needed
    counts: int
    element: type[np.generic] = np.uint8
    start: int | None = None  # a leading zero, or all bits set


_ARRAYS = {
    "offset": _Array("", _RECORDS, np.int64),
    "row": _Array("", _RECORDS, np.int32),
    "timestamp": _Array("timestamp", _RECORDS, np.int64),
    "timestamp_valid": _Array("timestamp", _RECORD_BITS, start=_ALL_SET),
    "timestamp_ms": _Array("timestampMs", _RECORDS, np.int64),
    "timestamp_type": _Array("timestampType", _RECORDS, np.int32),
    "message_crc": _Array(MESSAGE_CRC, _RECORDS, np.int64),
    "key_ends": _Array("key", _RECORDS, np.int32, _LEADING_ZERO),
    "key": _Array("key", _PAYLOAD_BYTES),
    "key_valid": _Array("key", _RECORD_BITS, start=_ALL_SET),
    "value_ends": _Array("value", _RECORDS, np.int32, _LEADING_ZERO),
    "value": _Array("value", _PAYLOAD_BYTES),
    "value_valid": _Array("value", _RECORD_BITS, start=_ALL_SET),
    "headers_ends": _Array("headers", _RECORDS, np.int32, _LEADING_ZERO),
    "headers_valid": _Array("headers", _RECORD_BITS, start=_ALL_SET),
    "name_ends": _Array("headers", _HEADERS, np.int32, _LEADING_ZERO),
    "name": _Array("headers", _PAYLOAD_BYTES),
    "header_value_ends": _Array("headers", _HEADERS, np.int32, _LEADING_ZERO),
    "header_value": _Array("headers", _PAYLOAD_BYTES),
    "header_value_valid": _Array("headers", _HEADER_BITS, start=_ALL_SET),
}


class RecordBuffers:
    """Allocates the arrays for one Arrow batch after the other and wraps what was filled.

    Arrays whose length goes by the number of records share one piece of memory; those that have
    room for every byte of the payload, or for all headers that fit there, have one each, so that
    what stays unused can go back.
    """

    def __init__(self, columns: frozenset[str], *, has_value_bytes: bool = True) -> None:
        self.wanted = Wanted(
            timestamp="timestamp" in columns,
            timestamp_ms="timestampMs" in columns,
            timestamp_type="timestampType" in columns,
            message_crc=MESSAGE_CRC in columns,
            key="key" in columns,
            value="value" in columns,
            value_bytes=has_value_bytes,
            headers="headers" in columns,
        )
        self._needed = [
            (index, array.counts, np.dtype(array.element), array.start)
            for index, array in enumerate(_ARRAYS.values())
            if not array.column or array.column in columns
        ]
        self._arrays: list[NDArray[Any]] = [
            np.zeros(1, dtype=array.element) for array in _ARRAYS.values()
        ]
        self._buffers: list[pa.Buffer | None] = [None] * len(_ARRAYS)

    def allocate(self, records: int, payload_bytes: int) -> RecordArrays:
        """Return arrays with room for `records` records of `payload_bytes` bytes in all."""
        headers = min(payload_bytes // _LEAST_HEADER_BYTES, records * MOST_HEADERS)
        # One element more, for the leading zero; and so no array is empty.
        lengths = (records + 1, records // 8 + 1, headers + 1, headers // 8 + 1, payload_bytes + 1)
        places: list[tuple[int, int, int, np.dtype[Any], int | None]] = []
        end = 0
        for index, counts, element, start in self._needed:
            size = lengths[counts] * element.itemsize
            if counts in _MOSTLY_UNUSED:
                buffer = pa.allocate_buffer(size, resizable=True)
                self._buffers[index] = buffer
                self._arrays[index] = _started(np.frombuffer(buffer, dtype=element), start)
            else:
                places.append((index, end, end + size, element, start))
                end += -(-size // _ALIGNMENT) * _ALIGNMENT
        shared = pa.allocate_buffer(end)
        memory = np.frombuffer(shared, dtype=np.uint8)
        for index, begin, end, element, start in places:
            self._arrays[index] = _started(memory[begin:end].view(element), start)
            self._buffers[index] = shared.slice(begin, end - begin)
        return RecordArrays._make(self._arrays)

    def columns(self, cursor: LongArray) -> dict[str, pa.Array]:
        """Return the wanted columns, as far as they are filled."""
        count = int(cursor[RECORDS])
        wanted = self.wanted
        columns = {"offset": self._numbers("offset", _INT64, count)}
        if wanted.timestamp:
            nulls = int(cursor[NULL_TIMESTAMPS])
            columns["timestamp"] = self._numbers("timestamp", _TIMESTAMP, count, nulls)
        if wanted.timestamp_ms:
            columns["timestampMs"] = self._numbers("timestamp_ms", _INT64, count)
        if wanted.timestamp_type:
            columns["timestampType"] = self._numbers("timestamp_type", _INT32, count)
        if wanted.message_crc:
            columns[MESSAGE_CRC] = self._numbers("message_crc", _INT64, count)
        if wanted.key:
            columns["key"] = self._binary("key", _BINARY, count, int(cursor[NULL_KEYS]))
        if wanted.value:
            columns["value"] = self._binary("value", _BINARY, count, int(cursor[NULL_VALUES]))
        if wanted.headers:
            columns["headers"] = self._headers(count, cursor)
        return columns

    def _numbers(self, name: str, data_type: pa.DataType, count: int, nulls: int = 0) -> pa.Array:
        buffers = [self._valid(name, nulls), self._buffers[_INDEX[name]]]
        return pa.Array.from_buffers(data_type, count, buffers, null_count=nulls)

    def _valid(self, name: str, nulls: int) -> pa.Buffer | None:
        return self._buffers[_INDEX[f"{name}_valid"]] if nulls else None

    def _binary(self, name: str, data_type: pa.DataType, count: int, nulls: int) -> pa.Array:
        size = int(self._arrays[_INDEX[f"{name}_ends"]][count])
        buffers = [
            self._valid(name, nulls),
            self._first(f"{name}_ends", (count + 1) * _END_BYTES),
            self._first(name, size),
        ]
        return pa.Array.from_buffers(data_type, count, buffers, null_count=nulls)

    def _first(self, name: str, size: int) -> pa.Buffer | None:
        """Return an array of which `size` bytes are used; give unused memory back."""
        buffer = self._buffers[_INDEX[name]]
        if isinstance(buffer, pa.ResizableBuffer) and 2 * size < buffer.size:
            self._arrays[_INDEX[name]] = _NO_BYTES
            buffer.resize(size, shrink_to_fit=True)
        return buffer

    def _headers(self, count: int, cursor: LongArray) -> pa.Array:
        headers = int(cursor[HEADERS])
        names = self._binary("name", pa.string(), headers, 0)
        if cursor[NOT_ASCII]:
            names = _as_utf8(names)
        nulls = int(cursor[NULL_HEADER_VALUES])
        values = self._binary("header_value", pa.binary(), headers, nulls)
        list_type = arrow_schema("records", ("headers",)).field("headers").type
        structs = pa.Array.from_buffers(
            list_type.value_type, headers, [None], children=[names, values]
        )
        nulls = int(cursor[NULL_HEADERS])
        buffers = [self._valid("headers", nulls), self._buffers[_INDEX["headers_ends"]]]
        return pa.Array.from_buffers(
            list_type, count, buffers, null_count=nulls, children=[structs]
        )


def _started(array: NDArray[Any], start: int | None) -> NDArray[Any]:
    """Fill a new array as far as it needs to be, and return it."""
    if start == _LEADING_ZERO:
        array[0] = 0
    elif start == _ALL_SET:
        array.fill(_ALL_SET)
    return array


def _as_utf8(keys: pa.Array) -> pa.Array:
    """Return the strings with bytes that are not UTF-8 replaced as Java's decoder replaces them."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        raw = keys.cast(pa.binary())
        ends = np.zeros(len(keys) + 1, dtype=np.int32)
        parts: list[bytes] = []
        # A bounded number at a time: Python objects take many times the memory.
        for start in range(0, len(keys), _KEYS_AT_A_TIME):
            some = raw.slice(start, _KEYS_AT_A_TIME).to_pylist()
            encoded = [decoded(value).encode() for value in some]
            ends[start + 1 : start + 1 + len(some)] = [len(value) for value in encoded]
            parts.append(b"".join(encoded))
        data = pa.py_buffer(b"".join(parts))
        ends = np.cumsum(ends, dtype=np.int32)
        return pa.Array.from_buffers(pa.string(), len(keys), [None, pa.py_buffer(ends), data])
    return keys
