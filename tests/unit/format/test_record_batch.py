"""Batches v2. The vector was printed by a real kafka-dump-log (docs/format.md F10 to F31)."""

import struct

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import BatchHeader, computed_crc, read_header
from kafkalog.format.record_batch import (
    BatchFields,
    decompressed_payload,
    read_batch,
    with_checksum,
    write_batch,
)
from kafkalog.format.records import Record
from kafkalog.wire.checksums import crc32, crc32c
from kafkalog.wire.compression import CompressionType
from tests.support.logs.samples import batch, record


def layout(encoded: bytes) -> tuple[int, ...]:
    """The header's fields in the order and the widths of F10."""
    return struct.unpack_from(">qiibIhiqqqhii", encoded)


def test_the_header_lies_as_the_specification_says() -> None:
    # F10
    encoded = write_batch(
        [Record(100, 5000, 0, b"k", b"v"), Record(102, 7000, 0, b"k", b"v")],
        BatchFields(leader_epoch=7, producer_id=11, producer_epoch=2, base_sequence=30),
    )
    crc = crc32c(encoded[21:])
    assert layout(encoded) == (
        100, len(encoded) - 12, 7, 2, crc, 0, 2, 5000, 7000, 11, 2, 30, 2,
    )  # fmt: skip
    assert read_header(encoded, 0) == BatchHeader(
        base_offset=100,
        length=len(encoded) - 12,
        leader_epoch=7,
        magic=2,
        crc=crc,
        attributes=0,
        last_offset_delta=2,
        base_timestamp_ms=5000,
        max_timestamp_ms=7000,
        producer_id=11,
        producer_epoch=2,
        base_sequence=30,
        records_count=2,
    )


def test_the_checksum_is_castagnolis_from_the_attributes_on() -> None:
    # F11, T2: base offset, length, leader epoch and magic are outside it.
    encoded = bytearray(batch(0))
    encoded[0] = encoded[12] = 0x7F
    header = read_header(bytes(encoded), 0)
    assert computed_crc(bytes(encoded), 0, header) == header.crc
    encoded[22] ^= 1
    assert computed_crc(bytes(encoded), 0, header) != header.crc
    assert header.crc != crc32(bytes(encoded[21:]))  # T22: it is not zlib's


def test_a_magic_of_3_does_not_disturb_the_checksum() -> None:
    # T1, F63: which is why the magic has to be looked at by itself.
    encoded = bytearray(batch(0))
    stored = layout(bytes(encoded))[4]
    encoded[16] = 3
    assert crc32c(bytes(encoded[21:])) == stored


@pytest.mark.parametrize(
    ("bit", "expected"),
    [
        (0x08, (0, True, False, False, None)),
        (0x10, (0, False, True, False, None)),
        (0x20, (0, False, False, True, None)),
        (0x40, (0, False, False, False, 1000)),
        (0x80, (0, False, False, False, None)),
        (0x05, (5, False, False, False, None)),
        (0x7F00, (0, False, False, False, None)),
    ],
)
def test_each_attribute_bit_means_one_thing(bit: int, expected: tuple[object, ...]) -> None:
    # F12, T12: the high byte has no meaning.
    encoded = bytearray(batch(0))
    encoded[21:23] = bit.to_bytes(2, "big")
    header = read_header(bytes(encoded), 0)
    assert (
        header.compression_id,
        header.timestamp_type == 1,
        header.is_transactional,
        header.is_control,
        header.delete_horizon_ms,
    ) == expected


def test_codecs_5_to_7_are_an_error_when_records_are_read() -> None:
    # F12, T12
    encoded = bytearray(batch(0))
    encoded[22] = 5
    with pytest.raises(CorruptDataError, match="codec: compression codec 5 in format 2"):
        read_batch(with_checksum(bytes(encoded)), 0)


def test_the_last_offset_comes_from_the_header() -> None:
    # F13, T6: after compaction the last record may be gone.
    encoded = write_batch([record(4), record(6)], BatchFields(base_offset=3, last_offset=9))
    assert read_header(encoded, 0).last_offset == 9
    assert [item.offset for item in read_batch(encoded, 0)] == [4, 6]


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [(2147483646, 3, 1), (2147483647, 0, 2147483647), (2147483647, 1, 0), (5, 2, 7), (-1, 3, -1)],
)
def test_sequences_count_on_from_the_largest_to_0(base: int, delta: int, last: int) -> None:
    # F14, F24, T10
    encoded = write_batch([record(0)], BatchFields(base_sequence=base, last_offset=delta))
    assert read_header(encoded, 0).last_sequence == last


def test_records_of_a_wrapping_batch_have_wrapping_sequences() -> None:
    # F24, T10
    encoded = write_batch(
        [record(0), record(1), record(2)], BatchFields(base_sequence=2147483646, producer_id=1)
    )
    assert [item.sequence for item in read_batch(encoded, 0)] == [2147483646, 2147483647, 0]


def test_log_append_time_overrides_every_delta() -> None:
    # F15, T8
    encoded = write_batch(
        [Record(0, 10, 1, None, b""), Record(1, 30, 1, None, b"")],
        BatchFields(timestamp_type=1, max_timestamp_ms=99),
    )
    assert [item.timestamp_ms for item in read_batch(encoded, 0)] == [99, 99]


def test_a_delete_horizon_is_not_a_timestamp() -> None:
    # F16, T7
    encoded = write_batch([record(0), record(1)], BatchFields(delete_horizon_ms=50_000))
    header = read_header(encoded, 0)
    assert (header.delete_horizon_ms, header.base_timestamp_ms) == (50_000, 50_000)
    assert [item.timestamp_ms for item in read_batch(encoded, 0)] == [1000, 1001]


@pytest.mark.parametrize("codec", CompressionType)
def test_what_follows_the_count_is_one_compressed_stream(codec: CompressionType) -> None:
    # F17, F55, T27: the value is larger than a block of any codec.
    records = [record(0, b"large" * 100_000), record(1)]
    encoded = write_batch(records, BatchFields(compression=codec))
    assert layout(encoded)[12] == 2  # the count itself is never compressed
    assert decompressed_payload(encoded, 0) == write_batch(records)[61:]
    assert read_batch(encoded, 0) == records


def test_an_empty_batch_advances_offsets_and_has_no_records() -> None:
    # F3, F31, T5
    encoded = write_batch(
        [], BatchFields(base_offset=10, last_offset=14, producer_id=1, base_sequence=3)
    )
    header = read_header(encoded, 0)
    assert (len(encoded), header.last_offset, header.last_sequence) == (61, 14, 7)
    assert read_batch(encoded, 0) == []


def test_the_payload_of_an_empty_batch_is_not_looked_at() -> None:
    # F31, T5: neither its bytes nor its codec.
    encoded = bytearray(write_batch([], BatchFields(base_offset=0, last_offset=0)))
    encoded[11] += 5
    encoded[22] = 7
    assert read_batch(with_checksum(bytes(encoded) + b"\xff" * 5), 0) == []


def test_an_empty_control_batch_has_no_first_record_to_look_at() -> None:
    # F30, T5
    empty = BatchFields(base_offset=0, last_offset=0, is_control=True)
    encoded = write_batch([], empty)
    assert read_header(encoded, 0).is_control
    assert read_batch(encoded, 0) == []


def test_a_control_batch_of_kraft_holds_several_records_and_no_producer() -> None:
    # F30, T19
    markers = [
        Record(offset, 5, 0, struct.pack(">hh", 0, kind), struct.pack(">h", 0))
        for offset, kind in enumerate((2, 5, 6))
    ]
    encoded = write_batch(markers, BatchFields(is_control=True))
    assert read_header(encoded, 0).producer_id == -1
    assert read_batch(encoded, 0) == markers


@pytest.mark.parametrize(
    ("count", "fault"),
    [(2, "record_count"), (4, "record_count"), (-1, "record_count"), (2**31 - 1, "record_count")],
)
def test_a_count_that_disagrees_is_a_fault_of_the_batch(count: int, fault: str) -> None:
    # F27, T13
    encoded = batch(0)[:57] + struct.pack(">i", count) + batch(0)[61:]
    with pytest.raises(CorruptDataError) as caught:
        read_batch(with_checksum(encoded), 0)
    assert (caught.value.fault, caught.value.position, caught.value.base_offset) == (fault, 0, 0)


@pytest.mark.parametrize("deltas", [(0, 0), (1, 0), (0, 3), (-1, 0)])
def test_offsets_inside_a_batch_rise_and_stay_in_it(deltas: tuple[int, int]) -> None:
    # F26
    records = [record(10 + delta) for delta in deltas]
    encoded = write_batch(records, BatchFields(base_offset=10, last_offset=12))
    with pytest.raises(CorruptDataError, match="record_offsets"):
        read_batch(encoded, 0)
