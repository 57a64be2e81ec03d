"""Kernels that cut a large payload into pieces of whole records, so that memory does not grow with
it. The payload's records are checked before. Rule: docs/format.md F57."""

from __future__ import annotations

from kafkalog.columns.jit.compiled import ByteArray, kernel
from kafkalog.columns.jit.integers import signed_32, varint
from kafkalog.columns.records.message_kernels import find_fields
from kafkalog.columns.records.record_arrays import Fields
from kafkalog.columns.records.record_kernels import read_record
from kafkalog.format.batch_header import LENGTH_POSITION, LOG_OVERHEAD, MAGIC_POSITION


@kernel
def piece_end(
    source: ByteArray, begin: int, end: int, magic: int, most_bytes: int
) -> tuple[int, int]:
    """Return the end of the first piece of source[begin:end] and the number of its records, 0 if no
    whole record is left. A piece has at most `most_bytes`, or a single record."""
    index, records = begin, 0
    while index < end:
        if magic == 2:
            size, after = varint(source, index, end)
        elif end - index >= LOG_OVERHEAD:
            size, after = signed_32(source, index + LENGTH_POSITION), index + LOG_OVERHEAD
        else:
            break
        # Old readers drop an incomplete message at the end.
        if size > end - after or (records > 0 and after + size - begin > most_bytes):
            break
        index = after + size
        records += 1
    return index, records


@kernel
def find_record_fields(source: ByteArray, begin: int, end: int, magic: int) -> Fields:
    """Return the fields of the record source[begin:end]; `magic` is the format of its batch."""
    if magic < 2:
        fields, _ = find_fields(source, begin, end, source[begin + MAGIC_POSITION])
        return fields
    return read_record(source, begin, end).fields
