"""Where records go: the arrays behind Arrow's columns, filled by kernels a record at a time.

An output array has room for as much as the payload could hold at the very most, so that nothing
needs to be measured first. Columns that nobody asked for have arrays of length 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import ByteArray, IntArray, LongArray, copy_bytes, inlined_kernel


class Wanted(NamedTuple):
    """Which columns to fill."""

    timestamp: bool
    timestamp_ms: bool
    timestamp_type: bool
    message_crc: bool
    key: bool
    value: bool
    headers: bool


class RecordArrays(NamedTuple):
    """The arrays of all columns. `*_ends` are Arrow's offsets of variable-length columns, with a
    leading zero; `*_valid` are validity bits, all set before a kernel clears those of nulls."""

    offset: LongArray
    row: IntArray  # the row of the batch table that the record came from
    timestamp: LongArray  # microseconds, as Spark holds time
    timestamp_valid: ByteArray
    timestamp_ms: LongArray
    timestamp_type: IntArray
    message_crc: LongArray  # the stored one of a message of the old formats, else NO_VALUE
    key_ends: IntArray
    key: ByteArray
    key_valid: ByteArray
    value_ends: IntArray
    value: ByteArray
    value_valid: ByteArray
    headers_ends: IntArray
    headers_valid: ByteArray
    name_ends: IntArray
    name: ByteArray
    header_value_ends: IntArray
    header_value: ByteArray
    header_value_valid: ByteArray


# How far the arrays are filled, and what was seen: the cursor of a fill.
(
    RECORDS,
    HEADERS,
    NOT_ASCII,
    NULL_TIMESTAMPS,
    NULL_KEYS,
    NULL_VALUES,
    NULL_HEADERS,
    NULL_HEADER_VALUES,
) = range(8)
CURSOR_SIZE = 8

# Beyond these a time in milliseconds has no place in 64 bits of microseconds.
_FIRST_MS = -(2**63 // 1000)
_LAST_MS = (2**63 - 1) // 1000
NO_TIMESTAMP = -1
# The first time that is asked for where all are.
LEAST_MS = -(2**63)


def new_cursor() -> LongArray:
    """A cursor at the start of all arrays."""
    return np.zeros(CURSOR_SIZE, dtype=np.int64)


@inlined_kernel
def is_in_times(timestamp_ms: int, first_ms: int, last_ms: int) -> bool:
    """Whether a record's time is asked for: it is if all times are, and is not if it has none."""
    is_in = first_ms <= timestamp_ms and timestamp_ms <= last_ms
    return is_in and (timestamp_ms != NO_TIMESTAMP or first_ms == LEAST_MS)


@inlined_kernel
def set_null(valid: ByteArray, index: int, cursor: LongArray, nulls: int) -> None:
    """Clear one validity bit and count it in cursor[nulls]."""
    valid[index >> 3] &= 255 - (1 << (index & 7))
    cursor[nulls] += 1


@inlined_kernel
def put_record(
    source: ByteArray,
    offset: int,
    row: int,
    timestamp_ms: int,
    timestamp_type: int,
    message_crc: int,
    key_start: int,
    key_size: int,
    value_start: int,
    value_size: int,
    headers_before: int,
    wanted: Wanted,
    arrays: RecordArrays,
    cursor: LongArray,
) -> None:
    """Append one record; its headers are there already, after `headers_before` others.

    A negative size is null, and so are no headers at all.
    """
    index = cursor[RECORDS]
    cursor[RECORDS] = index + 1
    arrays.offset[index] = offset
    arrays.row[index] = row
    if wanted.timestamp:
        if timestamp_ms == NO_TIMESTAMP or timestamp_ms < _FIRST_MS or timestamp_ms > _LAST_MS:
            arrays.timestamp[index] = 0
            set_null(arrays.timestamp_valid, index, cursor, NULL_TIMESTAMPS)
        else:
            arrays.timestamp[index] = timestamp_ms * 1000
    if wanted.timestamp_ms:
        arrays.timestamp_ms[index] = timestamp_ms
    if wanted.timestamp_type:
        arrays.timestamp_type[index] = timestamp_type
    if wanted.message_crc:
        arrays.message_crc[index] = message_crc
    if wanted.key:
        end = arrays.key_ends[index]
        if key_size > 0:
            copy_bytes(arrays.key, end, source, key_start, key_size)
            end += key_size
        elif key_size < 0:
            set_null(arrays.key_valid, index, cursor, NULL_KEYS)
        arrays.key_ends[index + 1] = end
    if wanted.value:
        end = arrays.value_ends[index]
        if value_size > 0:
            copy_bytes(arrays.value, end, source, value_start, value_size)
            end += value_size
        elif value_size < 0:
            set_null(arrays.value_valid, index, cursor, NULL_VALUES)
        arrays.value_ends[index + 1] = end
    if wanted.headers:
        if cursor[HEADERS] == headers_before:
            set_null(arrays.headers_valid, index, cursor, NULL_HEADERS)
        arrays.headers_ends[index + 1] = cursor[HEADERS]
