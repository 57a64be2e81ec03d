"""Kernels that walk batch headers.

They fill the batch table and stop where the bytes are no whole batch; what that means is decided
elsewhere. Rules: docs/format.md F60, F61, F63.
"""

from __future__ import annotations

from kafkalog.columns.batches.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    COMPUTED_CRC,
    CRC,
    FAULT,
    IS_BATCH,
    LAST_OFFSET,
    LEADER_EPOCH,
    LEADER_EPOCH_FAULT,
    MAGIC,
    MAX_TIMESTAMP,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    SIZE,
    UNCOMPRESSED_SIZE,
)
from kafkalog.columns.jit.compiled import ByteArray, LongArray, inlined_kernel, kernel, long
from kafkalog.columns.jit.integers import big_endian, signed_16, signed_32
from kafkalog.format.batch_header import (
    COMPRESSION_BITS,
    FIRST_BYTES,
    LEAST_LENGTH,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    NO_VALUE,
    V2_HEADER_BYTES,
)
from kafkalog.format.faults import Fault

_TRUNCATED = int(Fault.TRUNCATED)
_LENGTH = int(Fault.LENGTH)
_MAGIC = int(Fault.MAGIC)
_TOO_LARGE = int(Fault.TOO_LARGE)
_LEAST_V0, _LEAST_V1, _LEAST_V2 = LEAST_LENGTH
NOT_COMPUTED = -1

# Why scanning stopped, where it is no fault: everything given was framed, or the table is full;
# or more bytes are needed to frame the next batch.
DONE = 0
MORE_BYTES = -1


@kernel
def _read_header(data: ByteArray, index: int, row: LongArray) -> None:
    base_offset = big_endian(data, index, 8)
    magic = long(data[index + MAGIC_POSITION])
    row[IS_BATCH] = 1
    row[BASE_OFFSET] = base_offset
    row[MAGIC] = magic
    if magic == 2:
        row[LAST_OFFSET] = base_offset + signed_32(data, index + 23)
        row[LEADER_EPOCH] = signed_32(data, index + 12)
        row[CRC] = big_endian(data, index + 17, 4)
        row[ATTRIBUTES] = signed_16(data, index + 21)
        row[BASE_TIMESTAMP] = big_endian(data, index + 27, 8)
        row[MAX_TIMESTAMP] = big_endian(data, index + 35, 8)
        row[PRODUCER_ID] = big_endian(data, index + 43, 8)
        row[PRODUCER_EPOCH] = signed_16(data, index + 51)
        row[BASE_SEQUENCE] = signed_32(data, index + 53)
        row[RECORDS_COUNT] = signed_32(data, index + 57)
        return
    row[LAST_OFFSET] = base_offset
    row[LEADER_EPOCH] = NO_VALUE
    row[CRC] = big_endian(data, index + 12, 4)
    attributes = long(data[index + 17])
    row[ATTRIBUTES] = attributes - ((attributes >> 7) << 8)
    timestamp = big_endian(data, index + 18, 8) if magic == 1 else long(NO_VALUE)
    row[BASE_TIMESTAMP] = timestamp
    row[MAX_TIMESTAMP] = timestamp
    row[PRODUCER_ID] = NO_VALUE
    row[PRODUCER_EPOCH] = NO_VALUE
    row[BASE_SEQUENCE] = NO_VALUE
    row[RECORDS_COUNT] = NO_VALUE if attributes & COMPRESSION_BITS else 1


@kernel
def scan_batches(
    data: ByteArray,
    begin: int,
    end: int,
    data_position: int,
    file_size: int,
    table: LongArray,
    first_row: int,
    max_batch_bytes: int,
    headers_only: bool,
) -> tuple[int, int, int, int]:
    """Frame batches in data[begin:end] into table rows from `first_row` on.

    data[0] is the file's byte `data_position`. Gives the row and the index behind the last batch,
    DONE, MORE_BYTES or the Fault met there, and how many bytes the next batch needs. With
    `headers_only` a batch counts as given when its header is.
    """
    row = first_row
    index = begin
    while row < table.shape[0]:
        position = data_position + index
        left = file_size - position
        if left == 0 or index >= end:
            return row, index, DONE, 0
        if left < FIRST_BYTES:
            return row, index, _TRUNCATED, 0
        if end - index < FIRST_BYTES:
            return row, index, MORE_BYTES, min(left, V2_HEADER_BYTES)
        magic = long(data[index + MAGIC_POSITION])
        if magic > 2:
            return row, index, _MAGIC, 0
        length = signed_32(data, index + 8)
        least = _LEAST_V2 if magic == 2 else (_LEAST_V1 if magic == 1 else _LEAST_V0)
        if length < least:
            return row, index, _LENGTH, 0
        size = LOG_OVERHEAD + length
        if size > left:
            return row, index, _TRUNCATED, 0
        if size > max_batch_bytes:
            return row, index, _TOO_LARGE, size
        if end - index < (min(size, V2_HEADER_BYTES) if headers_only else size):
            return row, index, MORE_BYTES, size
        _set_row(data, index, position, size, table[row])
        row += 1
        index += size
    return row, index, DONE, 0


@inlined_kernel
def _set_row(data: ByteArray, index: int, position: int, size: int, row: LongArray) -> None:
    row[POSITION] = position
    row[SIZE] = size
    row[FAULT] = 0
    row[LEADER_EPOCH_FAULT] = 0
    row[COMPUTED_CRC] = NOT_COMPUTED
    row[UNCOMPRESSED_SIZE] = 0
    _read_header(data, index, row)


@kernel
def set_header_rows(
    headers: ByteArray, positions: LongArray, table: LongArray, first_row: int
) -> None:
    """Rows of whole batches at `positions`, whose first bytes follow each other in `headers`."""
    for number in range(len(positions)):
        index = number * V2_HEADER_BYTES
        size = LOG_OVERHEAD + signed_32(headers, index + 8)
        _set_row(headers, index, positions[number], size, table[first_row + number])


@kernel
def first_mismatch(table: LongArray, first_row: int, end_row: int) -> int:
    """The first row whose computed checksum is not the stored one, or `end_row`."""
    for row in range(first_row, end_row):
        computed = table[row, COMPUTED_CRC]
        if computed != NOT_COMPUTED and computed != table[row, CRC]:
            return row
    return end_row
