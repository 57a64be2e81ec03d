"""Kernels that cut a large payload into pieces of whole records, so that memory does not grow with
it. The payload's records are judged already. Rule: docs/format.md F57."""

from __future__ import annotations

from kafkalog.columns.jit.compiled import ByteArray, LongArray, kernel
from kafkalog.columns.jit.integers import signed_32, varint
from kafkalog.columns.records.message_kernels import find_fields
from kafkalog.format.batch_header import LENGTH_POSITION, LOG_OVERHEAD, MAGIC_POSITION

# What lies where in the array that says where the parts of a record are.
KEY_START, KEY_SIZE, VALUE_START, VALUE_SIZE = range(4)


@kernel
def piece_end(
    source: ByteArray, begin: int, end: int, magic: int, most_bytes: int
) -> tuple[int, int]:
    """Where a piece of source[begin:end] ends, of most_bytes at most unless it is a single record,
    and how many records it has: none where no whole one is left."""
    index, records = begin, 0
    while index < end:
        if magic == 2:
            size, after = varint(source, index, end)
        elif end - index >= LOG_OVERHEAD:
            size, after = signed_32(source, index + LENGTH_POSITION), index + LOG_OVERHEAD
        else:
            break
        # Old readers drop what is left of a message at the end.
        if size > end - after or (records > 0 and after + size - begin > most_bytes):
            break
        index = after + size
        records += 1
    return index, records


@kernel
def find_record_fields(
    source: ByteArray, begin: int, end: int, magic: int, fields: LongArray
) -> None:
    """Set where key and value of the record source[begin:end] lie; a negative size is null."""
    if magic < 2:
        find_fields(source, begin, end, source[begin + MAGIC_POSITION], fields)
        return
    size, index = varint(source, begin, end)
    index += 1
    while source[index] >= 0x80:  # the timestamp, of ten bytes at most
        index += 1
    size, index = varint(source, index + 1, end)
    for field in range(0, 4, 2):
        size, index = varint(source, index, end)
        fields[field] = index
        fields[field + 1] = size
        index += max(size, 0)
