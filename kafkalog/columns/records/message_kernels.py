"""Kernels that turn messages of format 0 and 1 into columns. Rules: docs/format.md F40 to F48."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import ByteArray, LongArray, inlined_kernel, kernel, long
from kafkalog.columns.jit.integers import signed_32, signed_64, unsigned_32
from kafkalog.columns.records.record_arrays import (
    HEADERS,
    NO_FIELDS,
    Fields,
    FoundRecord,
    Output,
    RequestedRange,
    begin_batch,
    is_requested,
    put_record,
    take_back,
)
from kafkalog.format import batch_header as layout
from kafkalog.format.faults import Fault

_RECORDS = int(Fault.RECORDS)
_RECORD_COUNT = int(Fault.RECORD_COUNT)
_RECORD_OFFSETS = int(Fault.RECORD_OFFSETS)
_INNER_CHECKSUM = int(Fault.INNER_CHECKSUM)
_LEAST_V0, _LEAST_V1, _ = layout.LEAST_LENGTH
_V0_FIELDS_START, _V1_FIELDS_START = layout.LEGACY_FIELDS_START

# What InnerMessages.walked says of the last wrapper that was checked whole: the offset of its last
# inner message as stored, and the number of inner messages.
LAST_INNER_OFFSET, INNER_COUNT = range(2)


class Payload(NamedTuple):
    """The records of one batch, or of a piece of one: source[begin:end] holds `records` records,
    NO_VALUE if their number is unknown; `row` is the batch's row in the batch table."""

    source: ByteArray
    begin: int
    end: int
    row: int
    records: int


class InnerMessages(NamedTuple):
    """What checking the messages inside a compressed one needs; `walked` is an int64 array of the
    columns LAST_INNER_OFFSET and INNER_COUNT."""

    check_crcs: bool
    crc_tables: LongArray
    walked: LongArray


def inner_messages(check_crcs: bool) -> InnerMessages:
    """Return a new InnerMessages."""
    return InnerMessages(check_crcs, slicing_tables(), np.zeros(2, dtype=np.int64))


@kernel
def crc_32(data: ByteArray, begin: int, end: int, tables: LongArray) -> int:
    """Return the CRC-32 of data[begin:end]; `tables` are those of `slicing_tables`."""
    crc = long(0xFFFFFFFF)
    index = begin
    while index + 8 <= end:
        crc ^= (
            long(data[index])
            | long(data[index + 1]) << 8
            | long(data[index + 2]) << 16
            | long(data[index + 3]) << 24
        )
        crc = (
            tables[7, crc & 0xFF]
            ^ tables[6, (crc >> 8) & 0xFF]
            ^ tables[5, (crc >> 16) & 0xFF]
            ^ tables[4, crc >> 24]
            ^ tables[3, data[index + 4]]
            ^ tables[2, data[index + 5]]
            ^ tables[1, data[index + 6]]
            ^ tables[0, data[index + 7]]
        )
        index += 8
    while index < end:
        crc = tables[0, (crc ^ data[index]) & 0xFF] ^ (crc >> 8)
        index += 1
    return crc ^ 0xFFFFFFFF


@cache
def slicing_tables(polynomial: int = 0xEDB88320) -> LongArray:
    """Return the tables of CRC-32 by slices of eight bytes: int64 of shape (8, 256), which all
    callers share."""
    tables = np.zeros((8, 256), dtype=np.int64)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ polynomial if value & 1 else value >> 1
        tables[0, byte] = value
    for level in range(1, 8):
        above = tables[level - 1]
        tables[level] = tables[0][above & 0xFF] ^ above >> 8
    return tables


@inlined_kernel
def _sized_field(data: ByteArray, index: int, end: int) -> tuple[int, int]:
    """Return the start and size of a field with its size in front; the start is -1 if the field
    does not fit into data[index:end]."""
    start = index + layout.FIELD_LENGTH_BYTES
    if start > end:
        return long(-1), long(0)
    size = long(signed_32(data, index))
    if size > end - start:
        return long(-1), long(0)
    return long(start), size


@kernel
def find_fields(data: ByteArray, begin: int, end: int, magic: int) -> tuple[Fields, bool]:
    """Return the fields of the message data[begin:end], and whether they fill it."""
    index = begin + (_V1_FIELDS_START if magic == 1 else _V0_FIELDS_START)
    key_start, key_size = _sized_field(data, index, end)
    if key_start < 0:
        return NO_FIELDS, False
    value_start, value_size = _sized_field(data, key_start + max(key_size, 0), end)
    if value_start < 0:
        return NO_FIELDS, False
    fields = Fields(key_start, key_size, value_start, value_size)
    return fields, value_start + max(value_size, 0) == end


@kernel
def fill_plain_message(
    payload: Payload, table: LongArray, requested: RequestedRange, output: Output
) -> int:
    """Append the record of an uncompressed message, if it is requested. Return the Fault, or 0."""
    row = payload.row
    magic = table[row, column.MAGIC]
    fields, is_whole = find_fields(payload.source, payload.begin, payload.end, magic)
    if not is_whole:
        return _RECORDS
    offset, timestamp_ms = table[row, column.BASE_OFFSET], table[row, column.MAX_TIMESTAMP]
    if not is_requested(requested, offset, timestamp_ms):
        return 0
    timestamp_type = long(layout.NO_TIMESTAMP_TYPE)
    if magic == 1:
        timestamp_type = (
            layout.LOG_APPEND_TIME
            if table[row, column.ATTRIBUTES] & layout.LOG_APPEND_TIME_BIT
            else 0
        )
    found = FoundRecord(offset, row, timestamp_ms, timestamp_type, table[row, column.CRC], fields)
    put_record(payload.source, found, output.cursor[HEADERS], output)
    return 0


@kernel
def _inner_fault(source: ByteArray, index: int, size: int, inner: InnerMessages) -> int:
    """Return the Fault of the inner message source[index : index + size], or 0."""
    magic = long(source[index + layout.MAGIC_POSITION])
    if magic > 1 or size - layout.LOG_OVERHEAD < (_LEAST_V1 if magic == 1 else _LEAST_V0):
        return _RECORDS
    if source[index + layout.LEGACY_ATTRIBUTES_POSITION] & layout.COMPRESSION_BITS:
        return _RECORDS
    if inner.check_crcs:
        computed = crc_32(
            source, index + layout.LEGACY_CHECKSUM_START, index + size, inner.crc_tables
        )
        if computed != unsigned_32(source, index + layout.LEGACY_CRC_POSITION):
            return _INNER_CHECKSUM
    _, is_whole = find_fields(source, index, index + size, magic)
    return 0 if is_whole else _RECORDS


@kernel
def _walk_inner(payload: Payload, inner: InnerMessages) -> int:
    """Check all messages of a wrapper and set `inner.walked`. Return the Fault, or 0."""
    source, index, walked = payload.source, payload.begin, inner.walked
    walked[INNER_COUNT] = 0
    while payload.end - index >= layout.LOG_OVERHEAD:
        length = signed_32(source, index + layout.LENGTH_POSITION)
        if length < _LEAST_V0:
            return _RECORDS
        size = layout.LOG_OVERHEAD + length
        if size > payload.end - index:
            break
        fault = _inner_fault(source, index, size, inner)
        if fault != 0:
            return fault
        walked[LAST_INNER_OFFSET] = signed_64(source, index + layout.BASE_OFFSET_POSITION)
        walked[INNER_COUNT] += 1
        index += size
    return 0 if walked[INNER_COUNT] > 0 else _RECORD_COUNT


@kernel
def _fits_last(magic: int, wrapper_offset: int, last_inner: int) -> bool:
    """Return whether a wrapper can have its offset, which is that of its last inner message. Inner
    messages of format 1 count from 0, except where a client gave the wrapper offset 0."""
    if magic == 0:
        return wrapper_offset == last_inner
    return wrapper_offset == 0 or wrapper_offset >= last_inner


@inlined_kernel
def _inner_time(source: ByteArray, index: int, wrapper: LongArray) -> tuple[int, int]:
    """Return the time in milliseconds and the timestamp type of the inner message at `index`;
    `wrapper` is the row of the batch table."""
    if source[index + layout.MAGIC_POSITION] != 1:
        return long(layout.NO_VALUE), long(layout.NO_TIMESTAMP_TYPE)
    if wrapper[column.MAGIC] != 1:
        return signed_64(source, index + layout.LEGACY_TIMESTAMP_POSITION), long(
            layout.NO_TIMESTAMP_TYPE
        )
    if (wrapper[column.ATTRIBUTES] & layout.LOG_APPEND_TIME_BIT) != 0:
        return long(wrapper[column.MAX_TIMESTAMP]), long(layout.LOG_APPEND_TIME)
    return signed_64(source, index + layout.LEGACY_TIMESTAMP_POSITION), long(0)


@kernel
def fill_inner_messages(
    payload: Payload,
    table: LongArray,
    requested: RequestedRange,
    output: Output,
    inner: InnerMessages,
) -> int:
    """Append the requested records inside a wrapper whose decompressed messages are the payload.
    Return the Fault, or 0.

    If the payload says how many records it has, it is a piece of a wrapper that was checked whole
    before, and `inner.walked` is as that check left it.
    """
    begin_batch(output)
    source, wrapper = payload.source, table[payload.row]
    records = payload.records
    if records == layout.NO_VALUE:
        fault = _walk_inner(payload, inner)
        if fault != 0:
            return fault
        records = inner.walked[INNER_COUNT]
    last = inner.walked[LAST_INNER_OFFSET]
    if not _fits_last(wrapper[column.MAGIC], wrapper[column.BASE_OFFSET], last):
        return _RECORD_OFFSETS
    is_relative = wrapper[column.MAGIC] == 1 and wrapper[column.BASE_OFFSET] != 0
    base = wrapper[column.BASE_OFFSET] - last if is_relative else long(0)
    previous = wrapper[column.EXPECTED_OFFSET] - 1
    index = payload.begin
    for _ in range(records):
        size = layout.LOG_OVERHEAD + signed_32(source, index + layout.LENGTH_POSITION)
        offset = base + signed_64(source, index + layout.BASE_OFFSET_POSITION)
        if offset <= previous:
            take_back(output)
            return _RECORD_OFFSETS
        previous = offset
        timestamp_ms, kind = _inner_time(source, index, wrapper)
        if is_requested(requested, offset, timestamp_ms):
            magic = long(source[index + layout.MAGIC_POSITION])
            fields, _ = find_fields(source, index, index + size, magic)
            crc = unsigned_32(source, index + layout.LEGACY_CRC_POSITION)
            found = FoundRecord(offset, payload.row, timestamp_ms, kind, crc, fields)
            put_record(source, found, output.cursor[HEADERS], output)
        index += size
    wrapper[column.RECORDS_COUNT] = inner.walked[INNER_COUNT]
    return 0
