"""Where the records of each batch lie: in the file's bytes, or decompressed into a scratch buffer.

Rules: docs/format.md F50 to F55.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.batches.batch_table import (
    ATTRIBUTES,
    BASE_OFFSET,
    EXPECTED_OFFSET,
    FAULT,
    LAST_OFFSET,
    MAGIC,
    MAX_TIMESTAMP,
    POSITION,
    RECORDS_COUNT,
    SIZE,
    UNCOMPRESSED_SIZE,
)
from kafkalog.columns.jit.compiled import ByteArray, LongArray, kernel
from kafkalog.columns.records.message_kernels import find_fields
from kafkalog.format.batch_header import (
    COMPRESSION_BITS,
    CONTROL_BIT,
    LEAST_LENGTH,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    NO_VALUE,
    V2_HEADER_BYTES,
)
from kafkalog.format.faults import Fault
from kafkalog.format.torn_batch import LEAST_RECORD_BYTES
from kafkalog.wire.compression import (
    CompressionError,
    CompressionType,
    OutputTooSmallError,
    decompress_into,
)

_FIRST_BYTES = 8 * 1024 * 1024
LATEST_LEGACY_COMPRESSION = int(CompressionType.LZ4)
LATEST_COMPRESSION = int(CompressionType.ZSTD)


# The columns of the array that says where payloads lie: the row of the batch table; begin and end
# of what is stored in the file's bytes or, once decompressed, in the scratch; its codec and
# format; how many records it holds at most; and how many it must hold, NO_VALUE for a wrapper of
# the old formats, which does not say.
ROW, BEGIN, END, COMPRESSION_ID, PAYLOAD_MAGIC, MOST_RECORDS, COUNT = range(7)
PAYLOAD_WIDTH = 7

# BEGIN of a payload that nobody has to look into: its batch's header says all that is asked.
UNSEEN = -1

# Of which batches of format 2 payloads are looked into: of all; of those whose records have
# timestamps of their own; of those that are not dense.
ALL_SEEN, TIMES_SEEN, GAPS_SEEN = range(3)

# Beyond this many records a header is not believed without a look at the payload.
_MOST_UNSEEN = 64 * 1024
_UNSEEN_RECORD_BYTES = 16  # about what a record takes in Arrow's columns

_LEAST_RECORD_BYTES = 1 + LEAST_RECORD_BYTES  # with its length
_LEAST_INNER_BYTES = LOG_OVERHEAD + min(LEAST_LENGTH)
_CODEC = int(Fault.CODEC)
_RECORDS = int(Fault.RECORDS)
_RECORD_COUNT = int(Fault.RECORD_COUNT)


@kernel
def most_records(announced: int, payload_bytes: int) -> int:
    """How many records a payload can hold at most, whatever its header announces."""
    if announced == NO_VALUE:
        return payload_bytes // _LEAST_INNER_BYTES + 1
    return min(announced, payload_bytes // _LEAST_RECORD_BYTES + 1)


@kernel
def _place_in_wrapper(
    data: ByteArray, begin: int, end: int, payload: LongArray, fields: LongArray
) -> int:
    """Where the value of a compressed message of format 0 or 1 lies; the Fault, or 0."""
    if not find_fields(data, begin, end, payload[PAYLOAD_MAGIC], fields):
        return _RECORDS
    if payload[COMPRESSION_ID] > LATEST_LEGACY_COMPRESSION:
        return _CODEC
    if fields[3] < 0:
        return _RECORD_COUNT
    payload[BEGIN] = fields[2]
    payload[END] = fields[2] + fields[3]
    return 0


@kernel
def _is_told_by_header(row: LongArray, magic: int, attributes: int, seen: int) -> bool:
    """Whether a sound batch's header says the offsets, and if asked the times, of its records: as
    many as there are offsets, and times that the broker set."""
    if magic != 2 or seen == ALL_SEEN or row[RECORDS_COUNT] > _MOST_UNSEEN:
        return False
    if seen == TIMES_SEEN and attributes & LOG_APPEND_TIME_BIT == 0:
        return False
    return bool(row[RECORDS_COUNT] == row[LAST_OFFSET] - row[BASE_OFFSET] + 1)


@kernel
def _may_have_times(row: LongArray, magic: int, attributes: int, first: int, last: int) -> bool:
    """Whether a record of a batch can have a time in [first, last]: none is later than the batch's
    largest, and all have that one if the broker set it."""
    latest = row[MAX_TIMESTAMP]
    is_append_time = magic > 0 and attributes & LOG_APPEND_TIME_BIT != 0
    return bool(first <= latest and (not is_append_time or latest <= last))


@kernel
def place_payloads(
    data: ByteArray,
    data_position: int,
    table: LongArray,
    first_offset: int,
    end_offset: int,
    first_ms: int,
    last_ms: int,
    with_control_records: bool,
    seen: int,
    payloads: LongArray,
    fields: LongArray,
) -> int:
    """List the sound batches that reach into [first_offset, end_offset) and may have records with
    times in [first_ms, last_ms], empty ones left out.

    Gives their number. Sets the fault of batches that cannot have records.
    """
    found = 0
    for row in range(table.shape[0]):
        if table[row, FAULT] != 0:
            continue
        attributes = table[row, ATTRIBUTES]
        magic = table[row, MAGIC]
        compression_id = attributes & COMPRESSION_BITS
        # The first offset inside an old compressed message shows only when it is decompressed.
        in_wrapper = magic < 2 and compression_id != 0
        first = table[row, EXPECTED_OFFSET if in_wrapper else BASE_OFFSET]
        reaches_in = table[row, LAST_OFFSET] >= first_offset and first < end_offset
        if not reaches_in or not _may_have_times(table[row], magic, attributes, first_ms, last_ms):
            continue
        if magic == 2 and attributes & CONTROL_BIT and not with_control_records:
            continue
        payload = payloads[found]
        begin = table[row, POSITION] - data_position
        payload[ROW] = row
        payload[BEGIN] = begin + (V2_HEADER_BYTES if magic == 2 else 0)
        payload[END] = begin + table[row, SIZE]
        payload[COMPRESSION_ID] = compression_id
        payload[PAYLOAD_MAGIC] = magic
        payload[COUNT] = NO_VALUE if in_wrapper else table[row, RECORDS_COUNT]
        fault = 0
        if in_wrapper:
            fault = _place_in_wrapper(data, begin, payload[END], payload, fields)
        elif magic == 2 and table[row, RECORDS_COUNT] < 0:
            fault = _RECORD_COUNT
        elif table[row, RECORDS_COUNT] == 0:
            table[row, UNCOMPRESSED_SIZE] = table[row, SIZE]
            continue
        elif compression_id > LATEST_COMPRESSION:
            fault = _CODEC
        if fault != 0:
            table[row, FAULT] = fault
            continue
        if compression_id == 0:
            table[row, UNCOMPRESSED_SIZE] = table[row, SIZE]
        payload[MOST_RECORDS] = most_records(
            table[row, RECORDS_COUNT], payload[END] - payload[BEGIN]
        )
        if _is_told_by_header(table[row], magic, attributes, seen):
            payload[BEGIN] = UNSEEN
            payload[COMPRESSION_ID] = 0
            payload[MOST_RECORDS] = table[row, RECORDS_COUNT]
        found += 1
    return found


@kernel
def group_end(payloads: LongArray, start: int, count: int, most_bytes: int) -> int:
    """Where a group of payloads ends that begins at `start`: all compressed or all not, and if
    not, of `most_bytes` at most unless it is a single one."""
    compressed = payloads[start, COMPRESSION_ID] != 0
    size = 0
    for i in range(start, count):
        if (payloads[i, COMPRESSION_ID] != 0) != compressed:
            return i
        if payloads[i, BEGIN] == UNSEEN:
            size += payloads[i, MOST_RECORDS] * _UNSEEN_RECORD_BYTES
        else:
            size += payloads[i, END] - payloads[i, BEGIN]
        if i > start and size > most_bytes and not compressed:
            return i
    return count


class ScratchFullError(Exception):
    """What is decompressed so far has to be used before more fits."""


class Scratch:
    """Memory for decompressed payloads, used again and again; grows to `max_batch_bytes`. Its
    `data` belongs to nobody else until it is given away."""

    def __init__(self, max_batch_bytes: int) -> None:
        self._limit = max_batch_bytes
        self.data: ByteArray = np.empty(min(_FIRST_BYTES, max_batch_bytes), dtype=np.uint8)
        self._room = self.data.data
        self.used = 0

    def decompress(self, stored: memoryview, compression_id: int, magic: int) -> Fault:
        """Append a payload, decompressed, to what is used already; why it is impossible, or NONE.

        Raises ScratchFullError when the caller has to empty the scratch first.
        """
        while True:
            try:
                room = self._room[self.used :]
                self.used += decompress_into(compression_id, magic, stored, room)
                return Fault.NONE
            except CompressionError:
                return Fault.COMPRESSION
            except OutputTooSmallError:
                if self.used:
                    raise ScratchFullError from None
                if len(self.data) >= self._limit:
                    return Fault.TOO_LARGE
                self.data = np.empty(min(4 * len(self.data), self._limit), dtype=np.uint8)
                self._room = self.data.data

    def give_away(self) -> None:
        """Begin anew with other memory: what is decompressed belongs to others now. The new memory
        is as large, and costs nothing until it is used."""
        self.data = np.empty(len(self.data), dtype=np.uint8)
        self._room = self.data.data
