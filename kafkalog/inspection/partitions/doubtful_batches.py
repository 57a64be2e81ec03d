"""Batches whose checksum is right and which a reader doubts all the same: what salvage can keep of
them. Rule: docs/format.md F196.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kafkalog.columns.batches import batch_table as column
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import computed_crc, read_header
from kafkalog.format.faults import Fault
from kafkalog.format.record_batch import decompressed_payload, read_batch
from kafkalog.format.records import consumed_records
from kafkalog.storage.recovery.framing import Readable

_OFFSET = struct.Struct(">q")
_MISPLACED = (Fault.OFFSET_RANGE, Fault.OFFSET_ORDER)


@dataclass(frozen=True, slots=True)
class DoubtfulBatch:
    """The bytes of a batch to be kept, and how many records a consumer gets of it."""

    data: bytes
    records: int


def is_misplaced(row: list[int]) -> bool:
    """Return whether nothing but the offset of a batch contradicts those around it."""
    return row[column.FAULT] in _MISPLACED


def miscounted(file: Readable, row: list[int]) -> DoubtfulBatch | None:
    """Return a batch whose count of records is wrong, as it is; None where it is something else."""
    if row[column.FAULT] != Fault.RECORD_COUNT or row[column.MAGIC] != 2:
        return None
    data = _sound_bytes(file, row)
    if data is None:
        return None
    try:
        consumed = consumed_records(decompressed_payload(data, 0), read_header(data, 0))
    except CorruptDataError:
        return None
    return DoubtfulBatch(data, consumed.records)


def replaced(file: Readable, row: list[int], offset: int, next_offset: int) -> DoubtfulBatch | None:
    """Return a misplaced batch under `offset`, if it has just the offsets up to `next_offset` and
    can be read; no checksum covers where a batch begins. None for what has its offsets inside."""
    data = _sound_bytes(file, row)
    if data is None:
        return None
    header = read_header(data, 0)
    is_wrapper = header.magic < 2 and header.compression_id
    if is_wrapper or offset + header.last_offset - header.base_offset + 1 != next_offset:
        return None
    moved = _OFFSET.pack(offset) + data[_OFFSET.size :]
    try:
        return DoubtfulBatch(moved, len(read_batch(moved, 0)))
    except CorruptDataError:
        return None


def _sound_bytes(file: Readable, row: list[int]) -> bytes | None:
    try:
        data = file.read(row[column.POSITION], row[column.SIZE])
    except CorruptDataError:
        return None
    header = read_header(data, 0)
    return data if computed_crc(data, 0, header) == header.crc else None
