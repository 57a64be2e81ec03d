"""Kernels that turn messages of format 0 and 1 into columns. Rules: docs/format.md F40 to F48."""

from __future__ import annotations

import numpy as np

from kafkalog.columns.batches.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    CRC,
    EXPECTED_OFFSET,
    MAGIC,
    MAX_TIMESTAMP,
    RECORDS_COUNT,
)
from kafkalog.columns.jit.compiled import ByteArray, LongArray, kernel, long
from kafkalog.columns.jit.integers import signed_32, signed_64, unsigned_32
from kafkalog.columns.records.record_arrays import (
    CURSOR_SIZE,
    HEADERS,
    RecordArrays,
    Wanted,
    is_in_times,
    put_record,
)
from kafkalog.columns.records.record_kernels import rewind
from kafkalog.format.batch_header import (
    BASE_OFFSET_POSITION,
    COMPRESSION_BITS,
    FIELD_LENGTH_BYTES,
    LEAST_LENGTH,
    LEGACY_ATTRIBUTES_POSITION,
    LEGACY_CHECKSUM_START,
    LEGACY_CRC_POSITION,
    LEGACY_FIELDS_START,
    LEGACY_TIMESTAMP_POSITION,
    LENGTH_POSITION,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    NO_TIMESTAMP_TYPE,
    NO_VALUE,
)
from kafkalog.format.faults import Fault

_RECORDS = int(Fault.RECORDS)
_RECORD_COUNT = int(Fault.RECORD_COUNT)
_RECORD_OFFSETS = int(Fault.RECORD_OFFSETS)
_INNER_CHECKSUM = int(Fault.INNER_CHECKSUM)
_LEAST_V0, _LEAST_V1, _ = LEAST_LENGTH
_V0_FIELDS_START, _V1_FIELDS_START = LEGACY_FIELDS_START


@kernel
def crc_32(data: ByteArray, begin: int, end: int, tables: LongArray) -> int:
    """CRC-32 of data[begin:end], eight bytes at a time by the tables of `slicing_tables`."""
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


def slicing_tables(polynomial: int = 0xEDB88320) -> LongArray:
    """The eight tables of 256 entries that CRC-32 by slices of eight bytes needs."""
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


@kernel
def find_fields(data: ByteArray, begin: int, end: int, magic: int, fields: LongArray) -> bool:
    """Set start and size of key and value (negative size: null); whether they fill the message."""
    index = begin + (_V1_FIELDS_START if magic == 1 else _V0_FIELDS_START)
    for field in range(2):
        if index + FIELD_LENGTH_BYTES > end:
            return False
        size = signed_32(data, index)
        index += FIELD_LENGTH_BYTES
        fields[2 * field] = index
        fields[2 * field + 1] = size
        if size > end - index:
            return False
        index += max(size, 0)
    return index == end


@kernel
def fill_plain_message(
    source: ByteArray,
    begin: int,
    end: int,
    table: LongArray,
    row: int,
    first_offset: int,
    end_offset: int,
    first_ms: int,
    last_ms: int,
    wanted: Wanted,
    arrays: RecordArrays,
    cursor: LongArray,
    fields: LongArray,
) -> int:
    """Append the one record of an uncompressed message; the Fault, or 0."""
    magic = table[row, MAGIC]
    if not find_fields(source, begin, end, magic, fields):
        return _RECORDS
    offset = table[row, BASE_OFFSET]
    if offset < first_offset or offset >= end_offset:
        return 0
    if not is_in_times(table[row, MAX_TIMESTAMP], first_ms, last_ms):
        return 0
    timestamp_type = long(NO_TIMESTAMP_TYPE)
    if magic == 1:
        timestamp_type = 1 if table[row, ATTRIBUTES] & LOG_APPEND_TIME_BIT else 0
    put_record(
        source,
        offset,
        row,
        table[row, MAX_TIMESTAMP],
        timestamp_type,
        table[row, CRC],
        fields[0],
        fields[1],
        fields[2],
        fields[3],
        cursor[HEADERS],
        wanted,
        arrays,
        cursor,
    )
    return 0


@kernel
def _inner_fault(
    source: ByteArray, index: int, size: int, fields: LongArray, crc_tables: LongArray, check: bool
) -> int:
    """What is wrong with the inner message source[index : index + size], or 0."""
    magic = long(source[index + MAGIC_POSITION])
    if magic > 1 or size - LOG_OVERHEAD < (_LEAST_V1 if magic == 1 else _LEAST_V0):
        return _RECORDS
    if source[index + LEGACY_ATTRIBUTES_POSITION] & COMPRESSION_BITS:
        return _RECORDS
    if check:
        computed = crc_32(source, index + LEGACY_CHECKSUM_START, index + size, crc_tables)
        if computed != unsigned_32(source, index + LEGACY_CRC_POSITION):
            return _INNER_CHECKSUM
    return 0 if find_fields(source, index, index + size, magic, fields) else _RECORDS


@kernel
def _walk_inner(
    source: ByteArray,
    begin: int,
    end: int,
    fields: LongArray,
    crc_tables: LongArray,
    check: bool,
    last: LongArray,
) -> int:
    """Judge all inner messages; last[0] becomes the last inner offset, last[1] their number."""
    index = begin
    last[1] = 0
    while end - index >= LOG_OVERHEAD:
        length = signed_32(source, index + LENGTH_POSITION)
        if length < _LEAST_V0:
            return _RECORDS
        size = LOG_OVERHEAD + length
        if size > end - index:
            break
        fault = _inner_fault(source, index, size, fields, crc_tables, check)
        if fault != 0:
            return fault
        last[0] = signed_64(source, index + BASE_OFFSET_POSITION)
        last[1] += 1
        index += size
    return 0 if last[1] > 0 else _RECORD_COUNT


@kernel
def _fits_last(magic: int, wrapper_offset: int, last_inner: int) -> bool:
    """Whether a wrapper can have its offset, that of its last inner message. Format 1 counts from 0
    in there, but for clients that give the wrapper offset 0."""
    if magic == 0:
        return wrapper_offset == last_inner
    return wrapper_offset == 0 or wrapper_offset >= last_inner


@kernel
def fill_inner_messages(
    source: ByteArray,
    begin: int,
    end: int,
    records: int,
    table: LongArray,
    row: int,
    first_offset: int,
    end_offset: int,
    first_ms: int,
    last_ms: int,
    wanted: Wanted,
    arrays: RecordArrays,
    cursor: LongArray,
    before: LongArray,
    fields: LongArray,
    crc_tables: LongArray,
    check: bool,
) -> int:
    """Append the records inside a wrapper, decompressed in source[begin:end]; the Fault, or 0.

    With `records`, source[begin:end] has so many of them and is a piece of a wrapper that is judged
    already, and `fields` are as that left them.
    """
    for i in range(CURSOR_SIZE):
        before[i] = cursor[i]
    last = fields[4:6]
    if records == NO_VALUE:
        fault = _walk_inner(source, begin, end, fields, crc_tables, check, last)
        if fault != 0:
            return fault
        records = last[1]
    fault = 0
    wrapper_offset = table[row, BASE_OFFSET]
    wrapper_magic = table[row, MAGIC]
    if not _fits_last(wrapper_magic, wrapper_offset, last[0]):
        return _RECORD_OFFSETS
    is_relative = wrapper_magic == 1 and wrapper_offset != 0
    base = wrapper_offset - last[0] if is_relative else long(0)
    append_time = wrapper_magic == 1 and (table[row, ATTRIBUTES] & LOG_APPEND_TIME_BIT) != 0
    previous = table[row, EXPECTED_OFFSET] - 1
    index = begin
    for _ in range(records):
        size = LOG_OVERHEAD + signed_32(source, index + LENGTH_POSITION)
        offset = base + signed_64(source, index + BASE_OFFSET_POSITION)
        if offset <= previous:
            fault = _RECORD_OFFSETS
            break
        previous = offset
        magic = long(source[index + MAGIC_POSITION])
        timestamp = long(NO_VALUE)
        timestamp_type = long(NO_TIMESTAMP_TYPE)
        if magic == 1:
            timestamp = (
                table[row, MAX_TIMESTAMP]
                if append_time
                else signed_64(source, index + LEGACY_TIMESTAMP_POSITION)
            )
            if wrapper_magic == 1:
                timestamp_type = LOG_APPEND_TIME if append_time else 0
        put = first_offset <= offset and offset < end_offset
        if put and is_in_times(timestamp, first_ms, last_ms):
            find_fields(source, index, index + size, magic, fields)
            put_record(
                source,
                offset,
                row,
                timestamp,
                timestamp_type,
                unsigned_32(source, index + LEGACY_CRC_POSITION),
                fields[0],
                fields[1],
                fields[2],
                fields[3],
                cursor[HEADERS],
                wanted,
                arrays,
                cursor,
            )
        index += size
    if fault != 0:
        rewind(arrays, wanted, cursor, before)
    else:
        table[row, RECORDS_COUNT] = last[1]
    return fault
