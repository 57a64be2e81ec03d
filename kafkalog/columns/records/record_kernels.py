"""Kernels that turn the records of batches v2 into columns. Rules: docs/format.md F20 to F27."""

from __future__ import annotations

from kafkalog.columns.batches.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    LAST_OFFSET,
    MAX_TIMESTAMP,
)
from kafkalog.columns.jit.compiled import (
    ByteArray,
    IntArray,
    LongArray,
    copy_bytes,
    inlined_kernel,
    kernel,
    long,
    prefetch,
)
from kafkalog.columns.jit.integers import varint, varlong
from kafkalog.columns.records.record_arrays import (
    CURSOR_SIZE,
    HEADERS,
    NOT_ASCII,
    NULL_HEADER_VALUES,
    RECORDS,
    RecordArrays,
    Wanted,
    is_in_times,
    put_record,
    set_null,
)
from kafkalog.format.batch_header import LOG_APPEND_TIME_BIT, NO_VALUE
from kafkalog.format.faults import Fault
from kafkalog.format.records import MOST_HEADERS

# Processors fetch ahead by themselves, but not across the border of a page.
PREFETCH_DISTANCE = 2048

_TOO_LARGE = int(Fault.TOO_LARGE)
_RECORDS = int(Fault.RECORDS)
_RECORD_COUNT = int(Fault.RECORD_COUNT)
_RECORD_OFFSETS = int(Fault.RECORD_OFFSETS)


@inlined_kernel
def rewind(arrays: RecordArrays, wanted: Wanted, cursor: LongArray, before: LongArray) -> None:
    """Take back what a faulty batch has put into the arrays."""
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


@kernel
def _skip_headers(source: ByteArray, index: int, end: int, count: int) -> int:
    """Walk `count` headers; the index behind them, or -1."""
    for _ in range(count):
        size, index = varint(source, index, end)
        if index < 0 or size < 0 or size > end - index:
            return -1
        size, index = varint(source, index + size, end)
        if index < 0 or size > end - index:
            return -1
        index += max(size, 0)
    return index


@kernel
def _put_headers(
    source: ByteArray,
    index: int,
    end: int,
    count: int,
    name_ends: IntArray,
    name: ByteArray,
    value_ends: IntArray,
    value: ByteArray,
    value_valid: ByteArray,
    cursor: LongArray,
) -> int:
    """Append `count` headers; the index behind them, or -1."""
    for _ in range(count):
        size, index = varint(source, index, end)
        if index < 0 or size < 0 or size > end - index:
            return -1
        header = cursor[HEADERS]
        copy_bytes(name, name_ends[header], source, index, size)
        name_ends[header + 1] = name_ends[header] + size
        for i in range(index, index + size):
            cursor[NOT_ASCII] |= source[i] >> 7
        size, index = varint(source, index + size, end)
        if index < 0 or size > end - index:
            return -1
        if size < 0:
            set_null(value_valid, header, cursor, NULL_HEADER_VALUES)
            size = 0
        copy_bytes(value, value_ends[header], source, index, size)
        value_ends[header + 1] = value_ends[header] + size
        index += size
        cursor[HEADERS] = header + 1
    return index


@kernel
def fill_batch(
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
) -> int:
    """Append of the `records` in source[begin:end], a batch or a piece of one that is judged
    already, those with offsets in [first_offset, end_offset) and times in [first_ms, last_ms].

    All records are read and judged; the Fault of the batch, or 0. A faulty batch adds nothing.
    """
    for i in range(CURSOR_SIZE):
        before[i] = cursor[i]
    base_offset = table[row, BASE_OFFSET]
    base_timestamp = table[row, BASE_TIMESTAMP]
    append_time = (table[row, ATTRIBUTES] & LOG_APPEND_TIME_BIT) != 0
    timestamp_type = 1 if append_time else 0
    max_timestamp = table[row, MAX_TIMESTAMP]
    longest_delta = table[row, LAST_OFFSET] - base_offset
    last_delta = long(-1)
    index = begin
    fault = 0
    for _ in range(records):
        if index == end:
            fault = _RECORD_COUNT
            break
        fault = _RECORDS
        prefetch(source, index + PREFETCH_DISTANCE)
        body_size, index = varint(source, index, end)
        if index < 0 or body_size < 0 or body_size > end - index:
            break
        record_end = index + body_size
        timestamp_delta, index = varlong(source, index + 1, record_end)
        if index < 0:
            break
        offset_delta, index = varint(source, index, record_end)
        if index < 0:
            break
        key_size, index = varint(source, index, record_end)
        if index < 0 or key_size > record_end - index:
            break
        key_start = index
        value_size, index = varint(source, index + max(key_size, 0), record_end)
        if index < 0 or value_size > record_end - index:
            break
        value_start = index
        index += max(value_size, 0)
        offset = base_offset + offset_delta
        timestamp = max_timestamp if append_time else base_timestamp + timestamp_delta
        put = first_offset <= offset and offset < end_offset
        put = put and is_in_times(timestamp, first_ms, last_ms)
        headers_before = cursor[HEADERS]
        count, index = varint(source, index, record_end)
        if index < 0 or count < 0 or count > record_end - index:
            break
        if count > MOST_HEADERS:
            fault = _TOO_LARGE
            break
        if count > 0 and put and wanted.headers:
            index = _put_headers(
                source,
                index,
                record_end,
                count,
                arrays.name_ends,
                arrays.name,
                arrays.header_value_ends,
                arrays.header_value,
                arrays.header_value_valid,
                cursor,
            )
        elif count > 0:
            index = _skip_headers(source, index, record_end, count)
        if index != record_end:
            break
        if offset_delta <= last_delta or offset_delta > longest_delta:
            fault = _RECORD_OFFSETS
            break
        fault = 0
        last_delta = offset_delta
        if not put:
            continue
        put_record(
            source,
            offset,
            row,
            timestamp,
            timestamp_type,
            NO_VALUE,
            key_start,
            key_size,
            value_start,
            value_size,
            headers_before,
            wanted,
            arrays,
            cursor,
        )
    if fault == 0 and records > 0 and index < end:
        fault = _RECORD_COUNT
    if fault != 0:
        rewind(arrays, wanted, cursor, before)
    return fault


@kernel
def fill_from_header(
    table: LongArray,
    row: int,
    first_offset: int,
    end_offset: int,
    wanted: Wanted,
    arrays: RecordArrays,
    cursor: LongArray,
) -> None:
    """Append the records of a batch without looking at them: there is one for each offset, and
    their times, if they are wanted, are the broker's. Nothing else of them can be wanted."""
    timestamp_type = 1 if (table[row, ATTRIBUTES] & LOG_APPEND_TIME_BIT) != 0 else 0
    first = max(table[row, BASE_OFFSET], first_offset)
    for offset in range(first, min(table[row, LAST_OFFSET] + 1, end_offset)):
        put_record(
            arrays.key,
            offset,
            row,
            table[row, MAX_TIMESTAMP],
            timestamp_type,
            NO_VALUE,
            0,
            0,
            0,
            0,
            0,
            wanted,
            arrays,
            cursor,
        )
