"""The two readers behind one face, so that tests can hold them against each other."""

from typing import Any

import numpy as np

from kafkalog.columns.batches.batch_table import (
    BASE_OFFSET,
    COMPUTED_CRC,
    EXPECTED_OFFSET,
    FAULT,
    IS_BATCH,
    LAST_OFFSET,
    LEADER_EPOCH_FAULT,
    POSITION,
    SIZE,
)
from kafkalog.columns.batches.segment_batches import SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow, MemoryWindow, Source, Window
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.format.faults import Fault
from kafkalog.format.record_batch import MAX_BATCH_BYTES, read_batch
from kafkalog.format.unreadable import UnreadableRanges
from tests.support.logs.plain_reader import FileRange, read_ranges, with_record_faults

COLUMNS = (
    "offset",
    "timestampMs",
    "timestampType",
    "key",
    "value",
    "headers",
    "leaderEpoch",
    "producerId",
    "producerEpoch",
    "sequence",
    "isTransactional",
    "compression",
    "magic",
    "batchBaseOffset",
    "position",
)
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")

Row = tuple[Any, ...]
# position, size, fault, leader epoch fault, expected offset, computed crc, base and last offset
AccountRow = tuple[int, int, str, bool, int, int | None, int | None, int | None]


class BytesSource:
    """Bytes in memory as a file that is read in pieces."""

    def __init__(self, data: bytes, unreadable: UnreadableRanges | None = None) -> None:
        self._data = data
        self.size = len(data)
        self.unreadable = unreadable or UnreadableRanges()

    def read_around(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]

    def read_into(self, position: int, target: memoryview) -> None:
        target[:] = self._data[position : position + len(target)]


def memory_window(data: bytes) -> MemoryWindow:
    return MemoryWindow(np.frombuffer(bytearray(data), dtype=np.uint8))


def by_reference(
    data: bytes,
    base_offset: int | None = None,
    next_base_offset: int | None = None,
    *,
    check_crcs: bool = True,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    unreadable: UnreadableRanges | None = None,
) -> tuple[list[AccountRow], list[Row]]:
    """The account of all bytes and all records, control records included, by the plain reader."""
    ranges = read_ranges(
        data, base_offset, next_base_offset, max_batch_bytes=max_batch_bytes,
        check_crcs=check_crcs, unreadable=unreadable,
    )  # fmt: skip
    ranges = with_record_faults(
        data, ranges, check_crcs=check_crcs, max_batch_bytes=max_batch_bytes
    )
    rows = [row for part in ranges if part.fault is Fault.NONE for row in _rows(data, part)]
    return [_account_row(part) for part in ranges], rows


def _account_row(part: FileRange) -> AccountRow:
    header = part.header
    return (
        part.position,
        part.size,
        part.fault.label,
        part.leader_epoch_fault,
        part.expected_offset,
        part.computed_crc,
        header.base_offset if header else None,
        header.last_offset if header else None,
    )


def _rows(data: bytes, part: FileRange) -> list[Row]:
    header = part.header
    assert header is not None
    records = read_batch(
        data, part.position, expected_offset=part.expected_offset, check_crcs=False
    )
    return [
        (
            record.offset,
            record.timestamp_ms,
            record.timestamp_type,
            record.key,
            record.value,
            [{"key": key, "value": value} for key, value in record.headers] or None,
            _or_null(header.leader_epoch),
            _or_null(header.producer_id),
            _or_null(header.producer_epoch),
            _or_null(record.sequence),
            header.is_transactional,
            COMPRESSIONS[header.compression_id] if header.compression_id < 5 else None,
            header.magic,
            header.base_offset,
            part.position,
        )
        for record in records
    ]


def _or_null(value: int) -> int | None:
    return None if value == -1 else value


def by_kernels(
    data: bytes | Source,
    base_offset: int | None = None,
    next_base_offset: int | None = None,
    *,
    in_pieces: bool = False,
    **options: Any,
) -> tuple[list[AccountRow], list[Row]]:
    """The same by the fast reader; `in_pieces` reads as from a file, not from memory."""
    if isinstance(data, bytes):
        window: Window = FileWindow(BytesSource(data)) if in_pieces else memory_window(data)
    else:
        window = FileWindow(data)
    segment = SegmentOptions(base_offset, next_base_offset, **options)
    columns = RecordColumns(segment, COLUMNS, {}, with_control_records=True)
    account: list[AccountRow] = []
    rows: list[Row] = []
    for chunk in SegmentBatches(window, segment).chunks():
        for batch in columns.batches(chunk):
            batch.validate(full=True)
            rows += [tuple(row.values()) for row in batch.to_pylist()]
        account += [_table_row(row) for row in chunk.table.tolist()]
    return account, rows


def _table_row(row: list[int]) -> AccountRow:
    is_batch = bool(row[IS_BATCH])
    return (
        row[POSITION],
        row[SIZE],
        Fault(row[FAULT]).label,
        bool(row[LEADER_EPOCH_FAULT]),
        row[EXPECTED_OFFSET],
        None if row[COMPUTED_CRC] == -1 else row[COMPUTED_CRC],
        row[BASE_OFFSET] if is_batch else None,
        row[LAST_OFFSET] if is_batch else None,
    )
