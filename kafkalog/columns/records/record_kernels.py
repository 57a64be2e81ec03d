"""Kernels that append the records of batches to columns. Rules: docs/format.md F20 to F27."""

from __future__ import annotations

from typing import NamedTuple

from kafkalog.columns.batches import batch_table as column
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
from kafkalog.columns.records.message_kernels import (
    InnerMessages,
    Payload,
    fill_inner_messages,
    fill_plain_message,
)
from kafkalog.columns.records.payloads import BEGIN, COMPRESSION_ID, COUNT, END, NOT_WALKED, ROW
from kafkalog.columns.records.record_arrays import (
    HEADERS,
    NO_FIELDS,
    NOT_ASCII,
    NULL_HEADER_VALUES,
    Fields,
    FoundRecord,
    Output,
    RecordArrays,
    RequestedRange,
    begin_batch,
    first_chosen,
    is_requested,
    put_record,
    set_null,
    take_back,
)
from kafkalog.format.batch_header import LOG_APPEND_TIME_BIT, NO_VALUE
from kafkalog.format.faults import Fault
from kafkalog.format.records import MOST_HEADERS

# Processors prefetch by themselves, but not beyond the end of a page.
PREFETCH_DISTANCE = 2048

_TOO_LARGE = int(Fault.TOO_LARGE)
_RECORDS = int(Fault.RECORDS)
_RECORD_COUNT = int(Fault.RECORD_COUNT)
_RECORD_OFFSETS = int(Fault.RECORD_OFFSETS)


class _Record(NamedTuple):
    """A record of a batch: its end and that of its value are positions in its source."""

    end: int
    timestamp_delta: int
    offset_delta: int
    fields: Fields
    header_count: int
    headers_start: int


_MALFORMED = _Record(-1, 0, 0, NO_FIELDS, 0, 0)


@inlined_kernel
def read_record(source: ByteArray, index: int, end: int) -> _Record:
    """Return the record at `index`, its headers not read; `end` is -1 if it is malformed."""
    body_size, index = varint(source, index, end)
    if index < 0 or body_size < 0 or body_size > end - index:
        return _MALFORMED
    record_end = index + body_size
    timestamp_delta, index = varlong(source, index + 1, record_end)
    if index < 0:
        return _MALFORMED
    offset_delta, index = varint(source, index, record_end)
    if index < 0:
        return _MALFORMED
    key_size, key_start = varint(source, index, record_end)
    if key_start < 0 or key_size > record_end - key_start:
        return _MALFORMED
    value_size, value_start = varint(source, key_start + max(key_size, 0), record_end)
    if value_start < 0 or value_size > record_end - value_start:
        return _MALFORMED
    count, index = varint(source, value_start + max(value_size, 0), record_end)
    if index < 0 or count < 0 or count > record_end - index:
        return _MALFORMED
    fields = Fields(key_start, key_size, value_start, value_size)
    return _Record(record_end, timestamp_delta, offset_delta, fields, count, index)


@kernel
def _skip_headers(source: ByteArray, index: int, end: int, count: int) -> int:
    """Return the position after `count` headers, -1 if one is malformed."""
    for _ in range(count):
        size, index = varint(source, index, end)
        if index < 0 or size < 0 or size > end - index:
            return -1
        size, index = varint(source, index + size, end)
        if index < 0 or size > end - index:
            return -1
        index += max(size, 0)
    return index


class _HeaderArrays(NamedTuple):
    """The arrays of headers in RecordArrays: a call that hands over all arrays takes longer."""

    name_ends: IntArray
    name: ByteArray
    value_ends: IntArray
    value: ByteArray
    value_valid: ByteArray


@inlined_kernel
def _header_arrays(arrays: RecordArrays) -> _HeaderArrays:
    return _HeaderArrays(
        arrays.name_ends,
        arrays.name,
        arrays.header_value_ends,
        arrays.header_value,
        arrays.header_value_valid,
    )


@kernel
def _put_headers(
    source: ByteArray, index: int, end: int, count: int, arrays: _HeaderArrays, cursor: LongArray
) -> int:
    """Append `count` headers. Return the position after them, -1 if one is malformed."""
    for _ in range(count):
        size, index = varint(source, index, end)
        if index < 0 or size < 0 or size > end - index:
            return -1
        header = cursor[HEADERS]
        copy_bytes(arrays.name, arrays.name_ends[header], source, index, size)
        arrays.name_ends[header + 1] = arrays.name_ends[header] + size
        for i in range(index, index + size):
            cursor[NOT_ASCII] |= source[i] >> 7
        size, index = varint(source, index + size, end)
        if index < 0 or size > end - index:
            return -1
        if size < 0:
            set_null(arrays.value_valid, header, cursor, NULL_HEADER_VALUES)
            size = 0
        copy_bytes(arrays.value, arrays.value_ends[header], source, index, size)
        arrays.value_ends[header + 1] = arrays.value_ends[header] + size
        index += size
        cursor[HEADERS] = header + 1
    return index


@kernel
def fill_batch(
    payload: Payload, table: LongArray, requested: RequestedRange, output: Output
) -> int:
    """Append the requested records of a batch of format 2, or of a piece of one.

    Reads and checks all records. Returns the Fault of the batch, or 0; a faulty batch adds nothing.
    """
    begin_batch(output)
    source, row = payload.source, payload.row
    headers = _header_arrays(output.arrays)
    base_offset = table[row, column.BASE_OFFSET]
    base_timestamp = table[row, column.BASE_TIMESTAMP]
    append_time = (table[row, column.ATTRIBUTES] & LOG_APPEND_TIME_BIT) != 0
    max_timestamp = table[row, column.MAX_TIMESTAMP]
    longest_delta = table[row, column.LAST_OFFSET] - base_offset
    last_delta = long(-1)
    chosen, place = requested.chosen, first_chosen(requested, base_offset)
    index = payload.begin
    fault = 0
    for _ in range(payload.records):
        if index == payload.end:
            fault = _RECORD_COUNT
            break
        fault = _RECORDS
        prefetch(source, index + PREFETCH_DISTANCE)
        record = read_record(source, index, payload.end)
        if record.end < 0:
            break
        if record.header_count > MOST_HEADERS:
            fault = _TOO_LARGE
            break
        offset = base_offset + record.offset_delta
        timestamp = max_timestamp if append_time else base_timestamp + record.timestamp_delta
        put = is_requested(requested, offset, timestamp)
        if put and len(chosen) > 0:
            while place < len(chosen) and chosen[place] < offset:
                place += 1
            put = place < len(chosen) and chosen[place] == offset
        headers_before = output.cursor[HEADERS]
        index, count = record.headers_start, record.header_count
        if count > 0 and put and output.wanted.headers:
            index = _put_headers(source, index, record.end, count, headers, output.cursor)
        elif count > 0:
            index = _skip_headers(source, index, record.end, count)
        if index != record.end:
            break
        if record.offset_delta <= last_delta or record.offset_delta > longest_delta:
            fault = _RECORD_OFFSETS
            break
        fault = 0
        last_delta = record.offset_delta
        if put:
            kind = 1 if append_time else 0
            found = FoundRecord(offset, row, timestamp, kind, NO_VALUE, record.fields)
            put_record(source, found, headers_before, output)
    if fault == 0 and payload.records > 0 and index < payload.end:
        fault = _RECORD_COUNT
    if fault != 0:
        take_back(output)
    return fault


@kernel
def _fill_from_header(
    table: LongArray, row: int, requested: RequestedRange, output: Output
) -> None:
    """Append the records of a batch without reading them: it has one record for each offset, the
    broker set their times, and no other column is wanted."""
    timestamp_type = 1 if (table[row, column.ATTRIBUTES] & LOG_APPEND_TIME_BIT) != 0 else 0
    timestamp_ms = table[row, column.MAX_TIMESTAMP]
    first = max(table[row, column.BASE_OFFSET], requested.first_offset)
    for offset in range(first, min(table[row, column.LAST_OFFSET] + 1, requested.end_offset)):
        found = FoundRecord(offset, row, timestamp_ms, timestamp_type, NO_VALUE, NO_FIELDS)
        put_record(output.arrays.key, found, 0, output)


@kernel
def fill_rows(
    file_data: ByteArray,
    decompressed: ByteArray,
    table: LongArray,
    payloads: LongArray,
    requested: RequestedRange,
    output: Output,
    inner: InnerMessages,
) -> None:
    """Append the requested records of the batches in `payloads`, an array as `place_payloads`
    makes it; set FAULT in `table`, the batch table, for batches that have none."""
    for i in range(payloads.shape[0]):
        row, records = payloads[i, ROW], payloads[i, COUNT]
        begin, end = payloads[i, BEGIN], payloads[i, END]
        compressed = payloads[i, COMPRESSION_ID] != 0
        source = decompressed if compressed else file_data
        payload = Payload(source, begin, end, row, records)
        fault = 0
        if begin == NOT_WALKED:
            _fill_from_header(table, row, requested, output)
        elif table[row, column.MAGIC] == 2:
            fault = fill_batch(payload, table, requested, output)
        elif compressed:
            fault = fill_inner_messages(payload, table, requested, output, inner)
        else:
            fault = fill_plain_message(payload, table, requested, output)
        if fault != 0:
            table[row, column.FAULT] = fault
