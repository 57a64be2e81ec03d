"""Kernels that write the records of batches v2. Rules: docs/format.md F20 to F27."""

from __future__ import annotations

from typing import NamedTuple

from kafkalog.columns.jit.compiled import (
    BoolArray,
    ByteArray,
    IntArray,
    LongArray,
    copy_bytes,
    inlined_kernel,
    kernel,
    long,
)

LARGEST_OFFSET_DELTA = 2**31 - 1
# What was written: bytes, and the latest timestamp of the records in milliseconds.
BYTES_WRITTEN, LATEST_TIMESTAMP = range(2)


class RowArrays(NamedTuple):
    """Rows to be written. `*_ends` are the end positions of variable-length values, with a leading
    zero; the headers of a row are `header_counts` entries from `header_starts` on."""

    offset: LongArray
    timestamp_ms: LongArray
    key: ByteArray
    key_ends: IntArray
    key_valid: BoolArray
    value: ByteArray
    value_ends: IntArray
    value_valid: BoolArray
    header_starts: LongArray
    header_counts: LongArray
    name: ByteArray
    name_ends: IntArray
    header_value: ByteArray
    header_value_ends: IntArray
    header_value_valid: BoolArray


@kernel
def varint_size(value: int) -> int:
    """Return the bytes of a zig-zag integer."""
    rest = (value << 1) ^ (value >> 63)
    size = long(1)
    while rest & ~long(0x7F):
        rest = (rest >> 7) & 0x1FFFFFFFFFFFFFF
        size += 1
    return size


@kernel
def _put_varint(target: ByteArray, index: int, value: int) -> int:
    """Write a zig-zag integer. Return the position after it."""
    rest = (value << 1) ^ (value >> 63)
    while rest & ~long(0x7F):
        target[index] = (rest & 0x7F) | 0x80
        rest = (rest >> 7) & 0x1FFFFFFFFFFFFFF
        index += 1
    target[index] = rest
    return index + 1


@inlined_kernel
def _field_size(ends: IntArray, valid: BoolArray, index: int) -> int:
    """Return the bytes of a field and its length."""
    if not valid[index]:
        return long(1)
    size = long(ends[index + 1]) - long(ends[index])
    return varint_size(size) + size


@inlined_kernel
def _put_field(
    target: ByteArray, index: int, data: ByteArray, ends: IntArray, valid: BoolArray, row: int
) -> int:
    """Write a field, null or not, after its length. Return the position after it."""
    if not valid[row]:
        return _put_varint(target, index, long(-1))
    start = long(ends[row])
    size = long(ends[row + 1]) - start
    index = _put_varint(target, index, size)
    copy_bytes(target, index, data, start, size)
    return index + size


@kernel
def _body_size(rows: RowArrays, row: int, timestamp_delta: int, offset_delta: int) -> int:
    """Return the bytes of a record without its length."""
    count = rows.header_counts[row]
    size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + varint_size(count)
    size += _field_size(rows.key_ends, rows.key_valid, row)
    size += _field_size(rows.value_ends, rows.value_valid, row)
    start = rows.header_starts[row]
    for header in range(start, start + count):
        length = long(rows.name_ends[header + 1]) - long(rows.name_ends[header])
        size += varint_size(length) + length
        size += _field_size(rows.header_value_ends, rows.header_value_valid, header)
    return size


@kernel
def _put_headers(rows: RowArrays, row: int, target: ByteArray, index: int) -> int:
    """Write the headers of a row after their number. Return the position after them."""
    count = rows.header_counts[row]
    index = _put_varint(target, index, count)
    start = rows.header_starts[row]
    for header in range(start, start + count):
        begin = long(rows.name_ends[header])
        size = long(rows.name_ends[header + 1]) - begin
        index = _put_varint(target, index, size)
        copy_bytes(target, index, rows.name, begin, size)
        index = _put_field(
            target,
            index + size,
            rows.header_value,
            rows.header_value_ends,
            rows.header_value_valid,
            header,
        )
    return index


@kernel
def put_records(
    rows: RowArrays, first: int, end: int, most_bytes: int, target: ByteArray, written: LongArray
) -> int:
    """Write the rows [first, end) as records of one batch, deltas counting from the first of them.

    Ends before a row that would make it larger than `most_bytes`, except the first, and before one
    whose offset is too far from the first. Sets BYTES_WRITTEN and LATEST_TIMESTAMP in `written`
    (int64). Returns the row after the last that was written: `first` if not even that one fits into
    `target`; BYTES_WRITTEN is then the bytes that it needs.
    """
    base_offset = rows.offset[first]
    base_timestamp = rows.timestamp_ms[first]
    latest = base_timestamp
    index = long(0)
    row = long(first)
    while row < end:
        offset_delta = rows.offset[row] - base_offset
        if offset_delta > LARGEST_OFFSET_DELTA:
            break
        timestamp_delta = rows.timestamp_ms[row] - base_timestamp
        body = _body_size(rows, row, timestamp_delta, offset_delta)
        size = varint_size(body) + body
        if row == first and size > len(target):
            index = size
            break
        if row > first and (index + size > most_bytes or index + size > len(target)):
            break
        index = _put_varint(target, index, body)
        target[index] = 0
        index = _put_varint(target, index + 1, timestamp_delta)
        index = _put_varint(target, index, offset_delta)
        index = _put_field(target, index, rows.key, rows.key_ends, rows.key_valid, row)
        index = _put_field(target, index, rows.value, rows.value_ends, rows.value_valid, row)
        index = _put_headers(rows, row, target, index)
        latest = max(latest, rows.timestamp_ms[row])
        row += 1
    written[BYTES_WRITTEN] = index
    written[LATEST_TIMESTAMP] = latest
    return row
