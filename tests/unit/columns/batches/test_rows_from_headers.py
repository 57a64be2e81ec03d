"""Columns that a batch's header tells: rows without a look at the records. F28."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.batches.fault_details import FaultyRange
from kafkalog.format.batch_header import V2_HEADER_BYTES
from kafkalog.format.faults import Fault
from kafkalog.format.record_batch import BatchFields, with_checksum, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType
from tests.support.logs.samples import joined, segments
from tests.support.logs.segment_tables import records_table

ZSTD = CompressionType.ZSTD
TOLD = ("timestampType", "sequence", "producerId", "partition", "compression")
TIMED = ("timestamp", "timestampMs", "offset")
COUNT_AT, LAST_DELTA_AT = 57, 23
FOUR = [Record(offset, 1000 - offset, 0, b"k", b"v" * offset) for offset in range(4)]


def with_changes(batch: bytes, changes: dict[int, bytes]) -> bytes:
    """The batch with other bytes at some positions, and the checksum that goes with them."""
    changed = bytearray(batch)
    for position, data in changes.items():
        changed[position : position + len(data)] = data
    return with_checksum(bytes(changed))


def unreadable(batch: bytes) -> bytes:
    """The batch with an unreadable payload, whose checksum is right."""
    return with_changes(batch, {V2_HEADER_BYTES: b"\xff" * (len(batch) - V2_HEADER_BYTES)})


def read(
    data: bytes, *columns: str, **options: Any
) -> tuple[list[tuple[object, ...]], list[Fault]]:
    faults: list[FaultyRange] = []
    table = records_table(data, columns, faults=faults, **options)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return rows, [fault.fault for fault in faults]


@given(segments(), st.integers(0, 50), st.integers(0, 50), st.booleans())
def test_rows_are_those_of_a_read_of_everything(
    segment: tuple[list[bytes], list[Record]], first: int, end: int, checks: bool
) -> None:
    bounds: dict[str, Any] = {"first_offset": first, "end_offset": end, "check_crcs": checks}
    data = joined(segment[0])
    full = records_table(data, (*TOLD, *TIMED, "key", "value"), **bounds)
    for columns in (TOLD, TIMED):
        part = records_table(data, columns, **bounds)
        assert part.combine_chunks() == full.select(columns).combine_chunks()


def test_payloads_of_dense_batches_are_not_looked_into() -> None:
    # F28: what makes that visible is a payload that cannot be read.
    data = unreadable(write_batch(FOUR, BatchFields(compression=ZSTD)))
    assert read(data, "offset", "timestampType") == ([(0, 0), (1, 0), (2, 0), (3, 0)], [])
    assert read(data, "offset", first_offset=1, end_offset=3) == ([(1,), (2,)], [])
    assert read(data, "value") == ([], [Fault.COMPRESSION])
    assert read(data, "timestamp") == ([], [Fault.COMPRESSION])


def test_times_that_the_broker_set_are_in_the_header() -> None:
    fields = BatchFields(compression=ZSTD, timestamp_type=1, max_timestamp_ms=7)
    data = unreadable(write_batch(FOUR, fields))
    assert read(data, "timestampMs", "offset") == ([(7, offset) for offset in range(4)], [])


def test_batches_with_gaps_are_looked_into() -> None:
    gaps = write_batch([FOUR[0], FOUR[3]])
    assert read(gaps, "offset") == ([(0,), (3,)], [])
    assert read(unreadable(gaps), "offset") == ([], [Fault.RECORDS])


def test_without_checksums_no_header_is_believed() -> None:
    data = unreadable(write_batch(FOUR))
    assert read(data, "offset", check_crcs=False) == ([], [Fault.RECORDS])


@pytest.mark.parametrize("compression", [CompressionType.NONE, ZSTD])
def test_a_header_that_announces_millions_is_not_believed(compression: CompressionType) -> None:
    batch = write_batch(FOUR, BatchFields(compression=compression))
    many = {LAST_DELTA_AT: struct.pack(">i", 2**31 - 2), COUNT_AT: struct.pack(">i", 2**31 - 1)}
    assert read(with_changes(batch, many), "offset") == ([], [Fault.RECORD_COUNT])


def test_a_batch_larger_than_an_arrow_batch_comes_in_parts() -> None:
    batches = [
        write_batch([Record(base + i, 0, 0, None, None) for i in range(60_000)])
        for base in range(0, 600_000, 60_000)
    ]
    rows, faults = read(joined(batches), "offset")
    assert (rows, faults) == ([(offset,) for offset in range(600_000)], [])
