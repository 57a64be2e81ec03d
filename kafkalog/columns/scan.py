"""Kernels that walk batch headers: framing, and which offsets can be believed.

They fill the batch table and stop where the bytes are no whole batch; what that means is decided
elsewhere. Rules: docs/format.md F60 to F63, F70 and F71.
"""

from __future__ import annotations

from kafkalog.columns.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    COMPUTED_CRC,
    CRC,
    EXPECTED_OFFSET,
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
from kafkalog.columns.compiled import ByteArray, LongArray, kernel, long
from kafkalog.columns.integers import big_endian, signed_16, signed_32
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
from kafkalog.format.segment import PATIENCE

_TRUNCATED = int(Fault.TRUNCATED)
_LENGTH = int(Fault.LENGTH)
_MAGIC = int(Fault.MAGIC)
_TOO_LARGE = int(Fault.TOO_LARGE)
_OFFSET_RANGE = int(Fault.OFFSET_RANGE)
_OFFSET_ORDER = int(Fault.OFFSET_ORDER)
_LEAST_V0, _LEAST_V1, _LEAST_V2 = LEAST_LENGTH
_BELIEVED = (0, _TOO_LARGE)
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
        table[row, POSITION] = position
        table[row, SIZE] = size
        table[row, FAULT] = 0
        table[row, LEADER_EPOCH_FAULT] = 0
        table[row, COMPUTED_CRC] = NOT_COMPUTED
        table[row, UNCOMPRESSED_SIZE] = 0
        _read_header(data, index, table[row])
        row += 1
        index += size
    return row, index, DONE, 0


@kernel
def first_mismatch(table: LongArray, first_row: int, end_row: int) -> int:
    """The first row whose computed checksum is not the stored one, or `end_row`."""
    for row in range(first_row, end_row):
        computed = table[row, COMPUTED_CRC]
        if computed != NOT_COMPUTED and computed != table[row, CRC]:
            return row
    return end_row


# What is remembered from row to row while offsets and leader epochs are judged.
(
    SEGMENT_FIRST,
    SEGMENT_LIMIT,
    EXPECTED,
    WAITING_ROW,
    WAITING_EPOCH,
    HIGHEST_EPOCH,
) = range(6)
BELIEF_SIZE = 6


@kernel
def _epoch_goes_back(table: LongArray, epoch: int, belief: LongArray) -> bool:
    before = belief[WAITING_EPOCH]
    belief[WAITING_EPOCH] = epoch
    if before == NO_VALUE or epoch < 0 or epoch >= before:
        belief[HIGHEST_EPOCH] = max(belief[HIGHEST_EPOCH], before)
        return False
    if epoch >= belief[HIGHEST_EPOCH]:
        table[belief[WAITING_ROW], LEADER_EPOCH_FAULT] = 1
        return False
    belief[HIGHEST_EPOCH] = max(belief[HIGHEST_EPOCH], before)
    belief[WAITING_EPOCH] = NO_VALUE
    return True


@kernel
def _offset_fault(table: LongArray, row: int, belief: LongArray) -> int:
    base = table[row, BASE_OFFSET]
    last = table[row, LAST_OFFSET]
    if not (belief[SEGMENT_FIRST] <= base <= last < belief[SEGMENT_LIMIT]):
        return _OFFSET_RANGE
    waiting = belief[WAITING_ROW]
    if waiting < 0:
        return 0 if belief[EXPECTED] <= base else _OFFSET_ORDER
    if base > table[waiting, LAST_OFFSET]:
        belief[EXPECTED] = table[waiting, LAST_OFFSET] + 1
        return 0
    if belief[EXPECTED] <= base and last < table[waiting, BASE_OFFSET]:
        table[waiting, FAULT] = _OFFSET_ORDER
        belief[WAITING_EPOCH] = NO_VALUE
        return 0
    return _OFFSET_ORDER


@kernel
def _set_expected(table: LongArray, first_row: int, end_row: int, belief: LongArray) -> None:
    for row in range(first_row, end_row):
        table[row, EXPECTED_OFFSET] = belief[EXPECTED]


@kernel
def believe_waiting(table: LongArray, end_row: int, belief: LongArray) -> int:
    """Judge the waiting row without a follower; the rows before `end_row` are then decided."""
    waiting = belief[WAITING_ROW]
    if waiting >= 0:
        belief[EXPECTED] = table[waiting, LAST_OFFSET] + 1
        belief[HIGHEST_EPOCH] = max(belief[HIGHEST_EPOCH], belief[WAITING_EPOCH])
        belief[WAITING_ROW] = -1
        belief[WAITING_EPOCH] = NO_VALUE
    _set_expected(table, waiting + 1, end_row, belief)
    return end_row


@kernel
def believe_offsets(table: LongArray, first_row: int, end_row: int, belief: LongArray) -> int:
    """Judge offsets and leader epochs of the rows; gives how many rows are now decided.

    The last sound batch is not: it waits for its follower.
    """
    for row in range(first_row, end_row):
        if table[row, IS_BATCH] == 0 or table[row, FAULT] not in _BELIEVED:
            if belief[WAITING_ROW] >= 0 and row + 1 - belief[WAITING_ROW] > PATIENCE:
                believe_waiting(table, row + 1, belief)
            elif belief[WAITING_ROW] < 0:
                table[row, EXPECTED_OFFSET] = belief[EXPECTED]
            continue
        waited = belief[WAITING_ROW]
        fault = _offset_fault(table, row, belief)
        if fault != 0:
            table[row, FAULT] = fault
            if waited < 0:
                table[row, EXPECTED_OFFSET] = belief[EXPECTED]
            continue
        _set_expected(table, waited + 1 if waited >= 0 else row, row + 1, belief)
        if _epoch_goes_back(table, table[row, LEADER_EPOCH], belief):
            table[row, LEADER_EPOCH_FAULT] = 1
        belief[WAITING_ROW] = row
    return belief[WAITING_ROW] if belief[WAITING_ROW] >= 0 else end_row
