"""Where records go: the arrays of Arrow's columns, which kernels fill record by record.

An output array has room for the most that the payload can hold, so that no kernel measures first.
The arrays of columns that are not wanted have length 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kafkalog.columns.jit.compiled import (
    ByteArray,
    IntArray,
    LongArray,
    copy_bytes,
    inlined_kernel,
    kernel,
    long,
)


class Wanted(NamedTuple):
    """Which columns to fill; without `value_bytes` each value is empty or null."""

    timestamp: bool
    timestamp_ms: bool
    timestamp_type: bool
    message_crc: bool
    key: bool
    value: bool
    value_bytes: bool
    headers: bool


class RecordArrays(NamedTuple):
    """The arrays of all columns. `*_ends` are the end positions of variable-length values, with a
    leading zero; `*_valid` are validity bits, all set until a kernel clears those of nulls."""

    offset: LongArray
    row: IntArray  # the batch's row in the batch table
    timestamp: LongArray  # microseconds, as Spark holds time
    timestamp_valid: ByteArray
    timestamp_ms: LongArray
    timestamp_type: IntArray
    message_crc: LongArray  # the stored CRC of a message of format 0 or 1, else NO_VALUE
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


# The columns of a cursor: how many records and headers the arrays hold, whether a header's name has
# bytes beyond ASCII, and how many nulls each column has.
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


class Output(NamedTuple):
    """The columns that a fill appends to. A cursor is an int64 array of CURSOR_SIZE elements:
    `cursor` is the present one, `before` that at the start of the current batch."""

    wanted: Wanted
    arrays: RecordArrays
    cursor: LongArray
    before: LongArray


class RequestedRange(NamedTuple):
    """The records to read: offsets in [first_offset, end_offset), times in [first_ms, last_ms]. If
    there are `chosen` offsets, which rise, batches without one have no record, and those of format
    2 have no others."""

    first_offset: int
    end_offset: int
    first_ms: int
    last_ms: int
    chosen: LongArray


class Fields(NamedTuple):
    """The positions of a record's key and value in its source; a negative size means null."""

    key_start: int
    key_size: int
    value_start: int
    value_size: int


NO_FIELDS = Fields(0, 0, 0, 0)


class FoundRecord(NamedTuple):
    """A record that is to be appended; `row` is its batch's row in the batch table."""

    offset: int
    row: int
    timestamp_ms: int
    timestamp_type: int
    message_crc: int
    fields: Fields


# Times in milliseconds outside of these do not fit into 64 bits of microseconds.
_FIRST_MS = -(2**63 // 1000)
_LAST_MS = (2**63 - 1) // 1000
NO_TIMESTAMP = -1
# `first_ms` of a range that has all times.
LEAST_MS = -(2**63)


def new_cursor() -> LongArray:
    """Return a cursor at the start of all arrays."""
    return np.zeros(CURSOR_SIZE, dtype=np.int64)


@inlined_kernel
def is_requested(requested: RequestedRange, offset: int, timestamp_ms: int) -> bool:
    """Return whether a record is in the range. A record without a time is in the range of all
    times only."""
    is_in = requested.first_offset <= offset and offset < requested.end_offset
    is_in = is_in and requested.first_ms <= timestamp_ms and timestamp_ms <= requested.last_ms
    return is_in and (timestamp_ms != NO_TIMESTAMP or requested.first_ms == LEAST_MS)


@kernel
def first_chosen(requested: RequestedRange, offset: int) -> int:
    """Return the index of the first chosen offset that is not below an offset."""
    chosen = requested.chosen
    first, end = long(0), long(len(chosen))
    while first < end:
        middle = (first + end) >> 1
        if chosen[middle] < offset:
            first = middle + 1
        else:
            end = middle
    return int(first)


@inlined_kernel
def set_null(valid: ByteArray, index: int, cursor: LongArray, nulls: int) -> None:
    """Clear one validity bit and count it in cursor[nulls]."""
    valid[index >> 3] &= 255 - (1 << (index & 7))
    cursor[nulls] += 1


@inlined_kernel
def put_record(source: ByteArray, record: FoundRecord, headers_before: int, output: Output) -> None:
    """Append a record whose headers, those after the first `headers_before`, are there already.

    A record without headers has null for them.
    """
    wanted, arrays, cursor = output.wanted, output.arrays, output.cursor
    index = cursor[RECORDS]
    cursor[RECORDS] = index + 1
    arrays.offset[index] = record.offset
    arrays.row[index] = record.row
    timestamp_ms = record.timestamp_ms
    if wanted.timestamp:
        if timestamp_ms == NO_TIMESTAMP or timestamp_ms < _FIRST_MS or timestamp_ms > _LAST_MS:
            arrays.timestamp[index] = 0
            set_null(arrays.timestamp_valid, index, cursor, NULL_TIMESTAMPS)
        else:
            arrays.timestamp[index] = timestamp_ms * 1000
    if wanted.timestamp_ms:
        arrays.timestamp_ms[index] = timestamp_ms
    if wanted.timestamp_type:
        arrays.timestamp_type[index] = record.timestamp_type
    if wanted.message_crc:
        arrays.message_crc[index] = record.message_crc
    if wanted.key:
        end = arrays.key_ends[index]
        size = record.fields.key_size
        if size > 0:
            copy_bytes(arrays.key, end, source, record.fields.key_start, size)
            end += size
        elif size < 0:
            set_null(arrays.key_valid, index, cursor, NULL_KEYS)
        arrays.key_ends[index + 1] = end
    if wanted.value:
        end = arrays.value_ends[index]
        size = record.fields.value_size
        if size > 0 and wanted.value_bytes:
            copy_bytes(arrays.value, end, source, record.fields.value_start, size)
            end += size
        elif size < 0:
            set_null(arrays.value_valid, index, cursor, NULL_VALUES)
        arrays.value_ends[index + 1] = end
    if wanted.headers:
        if cursor[HEADERS] == headers_before:
            set_null(arrays.headers_valid, index, cursor, NULL_HEADERS)
        arrays.headers_ends[index + 1] = cursor[HEADERS]


@inlined_kernel
def begin_batch(output: Output) -> None:
    """Note how far the arrays are filled."""
    for i in range(CURSOR_SIZE):
        output.before[i] = output.cursor[i]


@inlined_kernel
def take_back(output: Output) -> None:
    """Remove the records that were appended since `begin_batch`."""
    wanted, arrays, cursor, before = output.wanted, output.arrays, output.cursor, output.before
    for index in range(before[RECORDS], cursor[RECORDS]):
        bit = 1 << (index & 7)
        if wanted.timestamp:
            arrays.timestamp_valid[index >> 3] |= bit
        if wanted.key:
            arrays.key_valid[index >> 3] |= bit
        if wanted.value:
            arrays.value_valid[index >> 3] |= bit
        if wanted.headers:
            arrays.headers_valid[index >> 3] |= bit
    if wanted.headers:
        for index in range(before[HEADERS], cursor[HEADERS]):
            arrays.header_value_valid[index >> 3] |= 1 << (index & 7)
    for i in range(CURSOR_SIZE):
        cursor[i] = before[i]
