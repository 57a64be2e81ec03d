"""Where the records of each batch lie: in the file's bytes, or decompressed into a scratch buffer.

Rules: docs/format.md F50 to F55.
"""

from __future__ import annotations

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.jit.compiled import ByteArray, LongArray, inlined_kernel, kernel
from kafkalog.columns.records.message_kernels import find_fields
from kafkalog.columns.records.record_arrays import RequestedRange, first_chosen
from kafkalog.format import batch_header as layout
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


# The columns of an array of payloads, int64 of shape (payloads, PAYLOAD_WIDTH): the row of the
# batch table; begin and end in the file's bytes or, once decompressed, in the scratch buffer; codec
# and format; the most records that it can hold; and the number that it must hold, NO_VALUE for a
# wrapper of format 0 or 1, whose header does not have it.
ROW, BEGIN, END, COMPRESSION_ID, PAYLOAD_MAGIC, MOST_RECORDS, COUNT = range(7)
PAYLOAD_WIDTH = 7

# BEGIN of a payload that is not read: its batch's header has all that is wanted.
NOT_WALKED = -1

# Which payloads of format 2 are read: all; those whose records have timestamps of their own, or
# may have gaps between their offsets; those that may have gaps.
WALK_ALL, WALK_FOR_TIMES, WALK_WHERE_GAPS = range(3)

# If a header announces more records than this, the payload is read.
_MOST_NOT_WALKED = 64 * 1024
_NOT_WALKED_RECORD_BYTES = 16  # about the size of a record in Arrow's columns

_LEAST_RECORD_BYTES = 1 + LEAST_RECORD_BYTES  # with its length
_LEAST_INNER_BYTES = layout.LOG_OVERHEAD + min(layout.LEAST_LENGTH)
_CODEC = int(Fault.CODEC)
_RECORDS = int(Fault.RECORDS)
_RECORD_COUNT = int(Fault.RECORD_COUNT)


@kernel
def most_records(announced: int, payload_bytes: int) -> int:
    """Return the most records that a payload can hold, if its header announces `announced`."""
    if announced == layout.NO_VALUE:
        return payload_bytes // _LEAST_INNER_BYTES + 1
    return min(announced, payload_bytes // _LEAST_RECORD_BYTES + 1)


@kernel
def bound_records(payloads: LongArray, table: LongArray) -> None:
    """Set the most records that decompressed payloads can hold."""
    for payload in payloads:
        announced = table[payload[ROW], column.RECORDS_COUNT]
        payload[MOST_RECORDS] = most_records(announced, payload[END] - payload[BEGIN])


@kernel
def _place_in_wrapper(data: ByteArray, begin: int, end: int, payload: LongArray) -> int:
    """Set where the value of a compressed message of format 0 or 1 lies. Return the Fault, or 0."""
    fields, is_whole = find_fields(data, begin, end, payload[PAYLOAD_MAGIC])
    if not is_whole:
        return _RECORDS
    if payload[COMPRESSION_ID] > LATEST_LEGACY_COMPRESSION:
        return _CODEC
    if fields.value_size < 0:
        return _RECORD_COUNT
    payload[BEGIN] = fields.value_start
    payload[END] = fields.value_start + fields.value_size
    return 0


@kernel
def _header_suffices(batch: LongArray, walk: int) -> bool:
    """Return whether a batch's header has the offsets of its records, as many as the batch spans,
    and where `walk` needs them their times, which the broker set."""
    if (
        batch[column.MAGIC] != 2
        or walk == WALK_ALL
        or batch[column.RECORDS_COUNT] > _MOST_NOT_WALKED
    ):
        return False
    if walk == WALK_FOR_TIMES and batch[column.ATTRIBUTES] & layout.LOG_APPEND_TIME_BIT == 0:
        return False
    return bool(
        batch[column.RECORDS_COUNT] == batch[column.LAST_OFFSET] - batch[column.BASE_OFFSET] + 1
    )


@inlined_kernel
def _is_in_wrapper(batch: LongArray) -> bool:
    return bool(batch[column.MAGIC] < 2 and batch[column.ATTRIBUTES] & layout.COMPRESSION_BITS != 0)


@kernel
def _may_have_requested(batch: LongArray, requested: RequestedRange) -> bool:
    """Return whether a record of a batch can be requested. No record is later than the batch's
    largest timestamp, and all have that one if the broker set it."""
    # The header of a wrapper does not have the first offset.
    first = batch[column.EXPECTED_OFFSET if _is_in_wrapper(batch) else column.BASE_OFFSET]
    if batch[column.LAST_OFFSET] < requested.first_offset or first >= requested.end_offset:
        return False
    if len(requested.chosen) > 0:
        place = first_chosen(requested, first)
        if place == len(requested.chosen) or requested.chosen[place] > batch[column.LAST_OFFSET]:
            return False
    latest = batch[column.MAX_TIMESTAMP]
    is_append_time = (
        batch[column.MAGIC] > 0 and batch[column.ATTRIBUTES] & layout.LOG_APPEND_TIME_BIT != 0
    )
    is_early = is_append_time and latest > requested.last_ms
    return bool(requested.first_ms <= latest and not is_early)


@kernel
def _place_payload(
    data: ByteArray, data_position: int, batch: LongArray, payload: LongArray
) -> int:
    """Fill the row `payload` for a sound batch. Return the Fault of one without records, or 0."""
    magic, announced = batch[column.MAGIC], batch[column.RECORDS_COUNT]
    compression_id = batch[column.ATTRIBUTES] & layout.COMPRESSION_BITS
    in_wrapper = _is_in_wrapper(batch)
    begin = batch[column.POSITION] - data_position
    end = begin + batch[column.SIZE]
    payload[BEGIN] = begin + (layout.V2_HEADER_BYTES if magic == 2 else 0)
    payload[END] = end
    payload[COMPRESSION_ID] = compression_id
    payload[PAYLOAD_MAGIC] = magic
    payload[COUNT] = layout.NO_VALUE if in_wrapper else announced
    fault = 0
    if in_wrapper:
        fault = _place_in_wrapper(data, begin, end, payload)
    elif magic == 2 and announced < 0:
        fault = _RECORD_COUNT
    elif announced != 0 and compression_id > LATEST_COMPRESSION:
        fault = _CODEC
    if fault == 0 and (compression_id == 0 or announced == 0):
        batch[column.UNCOMPRESSED_SIZE] = batch[column.SIZE]
    payload[MOST_RECORDS] = most_records(announced, payload[END] - payload[BEGIN])
    return fault


@kernel
def place_payloads(
    data: ByteArray,
    data_position: int,
    table: LongArray,
    requested: RequestedRange,
    with_control_records: bool,
    walk: int,
    payloads: LongArray,
) -> int:
    """List in `payloads` the sound batches that may have requested records, without empty ones.

    data[0] is the file's byte `data_position`; `table` is the batch table; `walk` is WALK_ALL,
    WALK_FOR_TIMES or WALK_WHERE_GAPS. Returns their number, and sets FAULT of batches that cannot
    have records.
    """
    found = 0
    for row in range(table.shape[0]):
        batch = table[row]
        if batch[column.FAULT] != 0 or not _may_have_requested(batch, requested):
            continue
        if (
            batch[column.MAGIC] == 2
            and batch[column.ATTRIBUTES] & layout.CONTROL_BIT
            and not with_control_records
        ):
            continue
        payload = payloads[found]
        payload[ROW] = row
        fault = _place_payload(data, data_position, batch, payload)
        if fault != 0:
            batch[column.FAULT] = fault
        elif batch[column.RECORDS_COUNT] != 0:
            if _header_suffices(batch, walk):
                payload[BEGIN] = NOT_WALKED
                payload[COMPRESSION_ID] = 0
                payload[MOST_RECORDS] = batch[column.RECORDS_COUNT]
            found += 1
    return found


@kernel
def group_end(payloads: LongArray, start: int, count: int, most_bytes: int) -> int:
    """Return the end of the group of payloads that begins at `start`: payloads[start:end] are all
    compressed, or all not and at most `most_bytes` in all unless it is a single one."""
    compressed = payloads[start, COMPRESSION_ID] != 0
    size = 0
    for i in range(start, count):
        if (payloads[i, COMPRESSION_ID] != 0) != compressed:
            return i
        if payloads[i, BEGIN] == NOT_WALKED:
            size += payloads[i, MOST_RECORDS] * _NOT_WALKED_RECORD_BYTES
        else:
            size += payloads[i, END] - payloads[i, BEGIN]
        if i > start and size > most_bytes and not compressed:
            return i
    return count


class ScratchFullError(Exception):
    """The scratch buffer has to be emptied before the next payload fits."""


class Scratch:
    """Memory for decompressed payloads, used again and again; there is none before the first of
    them, and it grows to `max_batch_bytes`."""

    def __init__(self, max_batch_bytes: int) -> None:
        self._limit = max_batch_bytes
        self._renew(0)
        self.used = 0

    def decompress(self, stored: memoryview, compression_id: int, magic: int) -> Fault:
        """Append a payload, decompressed. Return the Fault, or NONE.

        Raises ScratchFullError when the caller has to empty the buffer first.
        """
        if not len(self.data):
            self._renew(min(_FIRST_BYTES, self._limit))
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
                self._renew(min(4 * len(self.data), self._limit))

    def give_away(self) -> None:
        """Leave the memory to those who hold views of it, and begin with new memory of the same
        size, which the system provides only when it is used."""
        self._renew(len(self.data))

    def _renew(self, size: int) -> None:
        self.data: ByteArray = np.empty(size, dtype=np.uint8)
        self._room = self.data.data
