"""Kernels that walk batch headers.

They fill the batch table and stop where the bytes are not a whole batch; what that means is decided
elsewhere. Rules: docs/format.md F60, F61, F63.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import ByteArray, LongArray, inlined_kernel, kernel, long
from kafkalog.columns.jit.integers import signed_16, signed_32, signed_64, unsigned_32
from kafkalog.format import batch_header as layout
from kafkalog.format.faults import Fault

_TRUNCATED = int(Fault.TRUNCATED)
_LENGTH = int(Fault.LENGTH)
_MAGIC = int(Fault.MAGIC)
_TOO_LARGE = int(Fault.TOO_LARGE)
_LEAST_V0, _LEAST_V1, _LEAST_V2 = layout.LEAST_LENGTH
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
    base_offset = signed_64(data, index + layout.BASE_OFFSET_POSITION)
    magic = long(data[index + layout.MAGIC_POSITION])
    row[column.IS_BATCH] = 1
    row[column.BASE_OFFSET] = base_offset
    row[column.MAGIC] = magic
    if magic == 2:
        row[column.LAST_OFFSET] = base_offset + signed_32(
            data, index + layout.LAST_OFFSET_DELTA_POSITION
        )
        row[column.LEADER_EPOCH] = signed_32(data, index + layout.LEADER_EPOCH_POSITION)
        row[column.CRC] = unsigned_32(data, index + layout.CRC_POSITION)
        row[column.ATTRIBUTES] = signed_16(data, index + layout.ATTRIBUTES_POSITION)
        row[column.BASE_TIMESTAMP] = signed_64(data, index + layout.BASE_TIMESTAMP_POSITION)
        row[column.MAX_TIMESTAMP] = signed_64(data, index + layout.MAX_TIMESTAMP_POSITION)
        row[column.PRODUCER_ID] = signed_64(data, index + layout.PRODUCER_ID_POSITION)
        row[column.PRODUCER_EPOCH] = signed_16(data, index + layout.PRODUCER_EPOCH_POSITION)
        row[column.BASE_SEQUENCE] = signed_32(data, index + layout.BASE_SEQUENCE_POSITION)
        row[column.RECORDS_COUNT] = signed_32(data, index + layout.RECORDS_COUNT_POSITION)
        return
    row[column.LAST_OFFSET] = base_offset
    row[column.LEADER_EPOCH] = layout.NO_VALUE
    row[column.CRC] = unsigned_32(data, index + layout.LEGACY_CRC_POSITION)
    attributes = long(data[index + layout.LEGACY_ATTRIBUTES_POSITION])
    row[column.ATTRIBUTES] = attributes - ((attributes >> 7) << 8)
    timestamp = long(layout.NO_VALUE)
    if magic == 1:
        timestamp = signed_64(data, index + layout.LEGACY_TIMESTAMP_POSITION)
    row[column.BASE_TIMESTAMP] = timestamp
    row[column.MAX_TIMESTAMP] = timestamp
    row[column.PRODUCER_ID] = layout.NO_VALUE
    row[column.PRODUCER_EPOCH] = layout.NO_VALUE
    row[column.BASE_SEQUENCE] = layout.NO_VALUE
    row[column.RECORDS_COUNT] = layout.NO_VALUE if attributes & layout.COMPRESSION_BITS else 1


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
        if left < layout.FIRST_BYTES:
            return row, index, _TRUNCATED, 0
        if end - index < layout.FIRST_BYTES:
            return row, index, MORE_BYTES, min(left, layout.V2_HEADER_BYTES)
        magic = long(data[index + layout.MAGIC_POSITION])
        if magic > 2:
            return row, index, _MAGIC, 0
        length = signed_32(data, index + layout.LENGTH_POSITION)
        least = _LEAST_V2 if magic == 2 else (_LEAST_V1 if magic == 1 else _LEAST_V0)
        if length < least:
            return row, index, _LENGTH, 0
        size = layout.LOG_OVERHEAD + length
        if size > left:
            return row, index, _TRUNCATED, 0
        if size > max_batch_bytes:
            return row, index, _TOO_LARGE, size
        if end - index < (min(size, layout.V2_HEADER_BYTES) if headers_only else size):
            return row, index, MORE_BYTES, size
        _set_row(data, index, position, size, table[row])
        row += 1
        index += size
    return row, index, DONE, 0


@inlined_kernel
def _set_row(data: ByteArray, index: int, position: int, size: int, row: LongArray) -> None:
    row[column.POSITION] = position
    row[column.SIZE] = size
    row[column.FAULT] = 0
    row[column.LEADER_EPOCH_FAULT] = 0
    row[column.COMPUTED_CRC] = NOT_COMPUTED
    row[column.UNCOMPRESSED_SIZE] = 0
    _read_header(data, index, row)


@kernel
def set_header_rows(
    headers: ByteArray, positions: LongArray, table: LongArray, first_row: int
) -> None:
    """Rows of whole batches at `positions`, whose first bytes follow each other in `headers`."""
    for number in range(len(positions)):
        index = number * layout.V2_HEADER_BYTES
        size = layout.LOG_OVERHEAD + signed_32(headers, index + layout.LENGTH_POSITION)
        _set_row(headers, index, positions[number], size, table[first_row + number])


@kernel
def first_mismatch(table: LongArray, first_row: int, end_row: int) -> int:
    """Return the first row whose computed checksum is not the stored one, or `end_row`."""
    for row in range(first_row, end_row):
        computed = table[row, column.COMPUTED_CRC]
        if computed != NOT_COMPUTED and computed != table[row, column.CRC]:
            return row
    return end_row
