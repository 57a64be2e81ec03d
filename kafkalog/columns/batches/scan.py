"""Kernels that walk batch headers.

They fill the batch table and stop where the bytes are not a whole batch; what that means is decided
elsewhere. Rules: docs/format.md F60, F61, F63.
"""

from __future__ import annotations

from typing import NamedTuple

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
from kafkalog.columns.jit.integers import signed_16, signed_32, signed_64, unsigned_32
from kafkalog.format.batch_header import (
    ATTRIBUTES_POSITION,
    BASE_OFFSET_POSITION,
    BASE_SEQUENCE_POSITION,
    BASE_TIMESTAMP_POSITION,
    COMPRESSION_BITS,
    CRC_POSITION,
    FIRST_BYTES,
    LAST_OFFSET_DELTA_POSITION,
    LEADER_EPOCH_POSITION,
    LEAST_LENGTH,
    LEGACY_ATTRIBUTES_POSITION,
    LEGACY_CRC_POSITION,
    LEGACY_TIMESTAMP_POSITION,
    LENGTH_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    NO_VALUE,
    PRODUCER_EPOCH_POSITION,
    PRODUCER_ID_POSITION,
    RECORDS_COUNT_POSITION,
    V2_HEADER_BYTES,
)
from kafkalog.format.faults import Fault

_TRUNCATED = int(Fault.TRUNCATED)
_LENGTH = int(Fault.LENGTH)
_MAGIC = int(Fault.MAGIC)
_TOO_LARGE = int(Fault.TOO_LARGE)
_LEAST_V0, _LEAST_V1, _LEAST_V2 = LEAST_LENGTH
NOT_COMPUTED = -1

# Why scanning stopped without a fault: everything given was framed, or the table is full; or more
# bytes are needed to frame the next batch.
DONE = 0
MORE_BYTES = -1


class Stretch(NamedTuple):
    """data[begin:end], where data[0] is the byte at `data_position` of a file of `file_size`."""

    begin: int
    end: int
    data_position: int
    file_size: int


@kernel
def _read_header(data: ByteArray, index: int, row: LongArray) -> None:
    base_offset = signed_64(data, index + BASE_OFFSET_POSITION)
    magic = long(data[index + MAGIC_POSITION])
    row[IS_BATCH] = 1
    row[BASE_OFFSET] = base_offset
    row[MAGIC] = magic
    if magic == 2:
        row[LAST_OFFSET] = base_offset + signed_32(data, index + LAST_OFFSET_DELTA_POSITION)
        row[LEADER_EPOCH] = signed_32(data, index + LEADER_EPOCH_POSITION)
        row[CRC] = unsigned_32(data, index + CRC_POSITION)
        row[ATTRIBUTES] = signed_16(data, index + ATTRIBUTES_POSITION)
        row[BASE_TIMESTAMP] = signed_64(data, index + BASE_TIMESTAMP_POSITION)
        row[MAX_TIMESTAMP] = signed_64(data, index + MAX_TIMESTAMP_POSITION)
        row[PRODUCER_ID] = signed_64(data, index + PRODUCER_ID_POSITION)
        row[PRODUCER_EPOCH] = signed_16(data, index + PRODUCER_EPOCH_POSITION)
        row[BASE_SEQUENCE] = signed_32(data, index + BASE_SEQUENCE_POSITION)
        row[RECORDS_COUNT] = signed_32(data, index + RECORDS_COUNT_POSITION)
        return
    row[LAST_OFFSET] = base_offset
    row[LEADER_EPOCH] = NO_VALUE
    row[CRC] = unsigned_32(data, index + LEGACY_CRC_POSITION)
    attributes = long(data[index + LEGACY_ATTRIBUTES_POSITION])
    row[ATTRIBUTES] = attributes - ((attributes >> 7) << 8)
    timestamp = long(NO_VALUE)
    if magic == 1:
        timestamp = signed_64(data, index + LEGACY_TIMESTAMP_POSITION)
    row[BASE_TIMESTAMP] = timestamp
    row[MAX_TIMESTAMP] = timestamp
    row[PRODUCER_ID] = NO_VALUE
    row[PRODUCER_EPOCH] = NO_VALUE
    row[BASE_SEQUENCE] = NO_VALUE
    row[RECORDS_COUNT] = NO_VALUE if attributes & COMPRESSION_BITS else 1


@kernel
def scan_batches(
    data: ByteArray,
    stretch: Stretch,
    table: LongArray,
    first_row: int,
    max_batch_bytes: int,
    headers_only: bool,
) -> tuple[int, int, int, int]:
    """Frame the batches of a stretch into table rows from `first_row` on.

    Return the row and the index after the last batch, DONE, MORE_BYTES or the Fault met there, and
    how many bytes the next batch needs. With `headers_only`, the header of a batch is enough.
    """
    row = first_row
    index, end = stretch.begin, stretch.end
    while row < table.shape[0]:
        position = stretch.data_position + index
        left = stretch.file_size - position
        if left == 0 or index >= end:
            return row, index, DONE, 0
        if left < FIRST_BYTES:
            return row, index, _TRUNCATED, 0
        if end - index < FIRST_BYTES:
            return row, index, MORE_BYTES, min(left, V2_HEADER_BYTES)
        magic = long(data[index + MAGIC_POSITION])
        if magic > 2:
            return row, index, _MAGIC, 0
        length = signed_32(data, index + LENGTH_POSITION)
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
        size = LOG_OVERHEAD + signed_32(headers, index + LENGTH_POSITION)
        _set_row(headers, index, positions[number], size, table[first_row + number])


@kernel
def first_mismatch(table: LongArray, first_row: int, end_row: int) -> int:
    """The first row whose computed checksum is not the stored one, or `end_row`."""
    for row in range(first_row, end_row):
        computed = table[row, COMPUTED_CRC]
        if computed != NOT_COMPUTED and computed != table[row, CRC]:
            return row
    return end_row
