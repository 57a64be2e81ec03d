"""Message sets of formats 0 and 1 (docs/format.md F40 to F48)."""

import struct
import zlib

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import read_header
from kafkalog.format.message_set import write_message_set, write_old_message
from kafkalog.format.record_batch import read_batch
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType, compress

GZIP = CompressionType.GZIP
CODECS = [GZIP, CompressionType.SNAPPY, CompressionType.LZ4]


def wrapper(
    offset: int, magic: int, inner: bytes, *, timestamp_ms: int = 77, append: bool = False
) -> bytes:
    """A gzip wrapper around the given bytes."""
    return write_old_message(
        offset,
        magic,
        None,
        compress(GZIP, magic, inner),
        timestamp_ms=timestamp_ms,
        attributes=1 | (8 if append else 0),
    )


def inner(*offsets: int, magic: int = 1) -> bytes:
    """Messages with the given offsets and the times 100 + offset."""
    return b"".join(
        write_old_message(offset, magic, b"k", b"v", timestamp_ms=100 + offset)
        for offset in offsets
    )


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_lies_as_the_specification_says(magic: int) -> None:
    # F40
    timestamp = struct.pack(">q", 123) if magic else b""
    body = bytes((magic, 0)) + timestamp + b"\0\0\0\1k" + b"\xff\xff\xff\xff"
    expected = struct.pack(">qiI", 9, 4 + len(body), zlib.crc32(body)) + body
    assert write_old_message(9, magic, b"k", None, timestamp_ms=123) == expected
    assert read_batch(expected, 0) == [
        Record(9, 123 if magic else -1, 0 if magic else -1, b"k", None)
    ]


@pytest.mark.parametrize("length", [-1, -2, -(2**31)])
def test_any_negative_length_is_null(length: int) -> None:
    # F40
    message = bytearray(write_old_message(0, 0, None, b""))
    message[18:22] = struct.pack(">i", length)
    assert read_batch(bytes(message), 0) == [Record(0, -1, -1, None, b"")]


def test_format_0_has_neither_timestamp_nor_timestamp_type() -> None:
    # F41, F42, T21: bit 3 means nothing there.
    message = write_old_message(5, 0, None, b"v", attributes=8)
    header = read_header(message, 0)
    assert (header.max_timestamp_ms, header.timestamp_type) == (-1, -1)


def test_format_1_may_have_log_append_time() -> None:
    # F41, T8
    message = write_old_message(5, 1, None, b"v", timestamp_ms=9, attributes=8)
    assert read_batch(message, 0) == [Record(5, 9, 1, None, b"v")]


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_format_0_are_absolute(codec: CompressionType) -> None:
    # F43, F44, T21
    records = [Record(offset, -1, -1, b"k", b"v") for offset in (40, 41, 44)]
    assert read_batch(write_message_set(records, 0, codec), 0) == records


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_format_1_count_back_from_the_wrappers(codec: CompressionType) -> None:
    # F45, T20: with a hole, as after compaction.
    records = [Record(offset, offset, 0, b"k", b"v") for offset in (40, 41, 44)]
    assert read_batch(write_message_set(records, 1, codec), 0) == records


def test_the_base_is_the_wrappers_offset_minus_the_last_inner_one() -> None:
    # F45, T20
    data = wrapper(44, 1, inner(2, 3, 6))
    assert [item.offset for item in read_batch(data, 0)] == [40, 41, 44]


def test_a_wrapper_of_offset_0_has_absolute_inner_offsets() -> None:
    # F45, T20
    data = wrapper(0, 1, inner(0, 1, 2))
    assert [item.offset for item in read_batch(data, 0)] == [0, 1, 2]


def test_inner_offsets_beyond_the_wrappers_are_a_fault() -> None:
    # F45
    with pytest.raises(CorruptDataError, match="record_offsets: inner offset 6 in a wrapper of"):
        read_batch(wrapper(5, 1, inner(0, 6)), 0)


def test_a_wrapper_of_format_0_that_denies_its_last_offset_is_a_fault() -> None:
    # F44
    with pytest.raises(CorruptDataError, match="record_offsets"):
        read_batch(wrapper(5, 0, inner(3, 4, magic=0)), 0)


def test_inner_messages_that_overlap_what_came_before_are_a_fault() -> None:
    # F71, T33
    data = wrapper(44, 1, inner(0, 1, 2))
    assert len(read_batch(data, 0, expected_offset=42)) == 3
    with pytest.raises(CorruptDataError, match="record_offsets: inner offset 42 after 42"):
        read_batch(data, 0, expected_offset=43)


def test_with_log_append_time_all_have_the_wrappers_timestamp() -> None:
    # F46, T8, T22: and the inner checksums are right for the times they had.
    data = wrapper(1, 1, inner(0, 1), timestamp_ms=5000, append=True)
    assert [(item.timestamp_ms, item.timestamp_type) for item in read_batch(data, 0)] == [
        (5000, 1),
        (5000, 1),
    ]


def test_with_create_time_inner_messages_keep_their_own() -> None:
    # F46
    data = wrapper(1, 1, inner(0, 1), timestamp_ms=5000)
    assert [(item.timestamp_ms, item.timestamp_type) for item in read_batch(data, 0)] == [
        (100, 0),
        (101, 0),
    ]


def test_an_inner_message_of_format_0_has_no_timestamp_wherever_it_stands() -> None:
    # F47, T23
    data = wrapper(1, 1, inner(0, magic=0) + inner(1, magic=1), append=True)
    assert [(item.timestamp_ms, item.timestamp_type) for item in read_batch(data, 0)] == [
        (-1, -1),
        (77, 1),
    ]


def test_inner_checksums_are_checked_if_checksums_are() -> None:
    # F48, T22
    damaged = bytearray(inner(0))
    damaged[-1] ^= 1
    data = wrapper(0, 1, bytes(damaged))
    with pytest.raises(CorruptDataError, match="inner_checksum"):
        read_batch(data, 0)
    assert len(read_batch(data, 0, check_crcs=False)) == 1


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (write_old_message(0, 1, None, None, attributes=1), "record_count"),
        (wrapper(0, 1, b""), "record_count"),
        (wrapper(0, 1, wrapper(0, 1, inner(0))), "records"),
        (wrapper(0, 1, inner(0)[:8] + struct.pack(">i", 13) + inner(0)[12:]), "records"),
        (wrapper(0, 1, inner(0)[:16] + b"\2" + inner(0)[17:]), "records"),
        (write_old_message(0, 1, None, b"", attributes=4), "codec"),
        (write_old_message(0, 0, None, b"no gzip", attributes=1), "compression"),
    ],
)
def test_a_wrapper_that_holds_no_message_set_is_a_fault(data: bytes, fault: str) -> None:
    # F41, F43
    with pytest.raises(CorruptDataError) as caught:
        read_batch(data, 0)
    assert caught.value.fault == fault


def test_an_incomplete_inner_message_at_the_end_is_dropped() -> None:
    # F43
    data = wrapper(0, 1, inner(0) + inner(1)[:-1])
    assert [item.offset for item in read_batch(data, 0)] == [0]


@pytest.mark.parametrize("size", [0, 2, 8])
def test_fields_that_do_not_fill_the_message_are_a_fault(size: int) -> None:
    # F40
    message = write_old_message(0, 0, b"key", b"value")
    forged = message[:18] + struct.pack(">i", size) + message[22:]
    with pytest.raises(CorruptDataError, match="records"):
        read_batch(forged, 0)
