"""Records of format 2 (docs/format.md F1, F2, F20 to F25)."""

import pytest

from kafkalog.errors import CorruptDataError
from kafkalog.format.record_batch import BatchFields, read_batch, with_checksum, write_batch
from kafkalog.format.records import Record
from kafkalog.wire.varints import write_varint


def with_payload(payload: bytes, count: int = 1) -> bytes:
    """A batch whose records are the given bytes."""
    empty = write_batch([], BatchFields(base_offset=0, last_offset=2**31 - 1))
    header = bytearray(empty)
    header[8:12] = (49 + len(payload)).to_bytes(4, "big")
    header[27:35] = (1000).to_bytes(8, "big")
    header[57:61] = count.to_bytes(4, "big")
    return with_checksum(bytes(header) + payload)


def encoded(*fields: int | bytes, attributes: int = 0) -> bytes:
    """A record of variable-length integers and bytes, its length in front."""
    body = bytes((attributes,)) + b"".join(
        field if isinstance(field, bytes) else write_varint(field) for field in fields
    )
    return write_varint(len(body)) + body


def test_a_record_lies_as_the_specification_says() -> None:
    # F1, F21, F23: every byte by hand.
    data = bytes.fromhex(
        "24"  # length 18
        "00"  # attributes
        "0e"  # timestamp delta 7
        "04"  # offset delta 2
        "02" "6b"  # key "k"
        "04" "76 76"  # value "vv"
        "04"  # two headers
        "02" "61" "02" "31"  # a: 1
        "06" "c5 bc 62" "01"  # żb: null
    )  # fmt: skip
    assert read_batch(with_payload(data), 0) == [
        Record(2, 1007, 0, b"k", b"vv", (("a", b"1"), ("żb", None)))
    ]


@pytest.mark.parametrize("length", [-1, -2, -(2**31)])
def test_any_negative_length_is_null(length: int) -> None:
    # F2, F22, T9
    (null,) = read_batch(with_payload(encoded(0, 0, length, length, 1, 1, b"h", length)), 0)
    assert (null.key, null.value, null.headers) == (None, None, (("h", None),))


def test_null_and_empty_are_six_states() -> None:
    # F2, F22, T9
    (empty,) = read_batch(with_payload(encoded(0, 0, 0, 0, 1, 1, b"h", 0)), 0)
    assert (empty.key, empty.value, empty.headers) == (b"", b"", (("h", b""),))


def test_headers_keep_their_order_and_their_duplicates() -> None:
    # F23, T9
    headers = (("b", b"1"), ("a", None), ("b", b"2"), ("", b""))
    data = write_batch([Record(0, 0, 0, None, None, headers)])
    assert read_batch(data, 0)[0].headers == headers


def test_what_is_not_utf_8_in_a_header_key_is_replaced() -> None:
    # F23: the replacement of Java's decoder.
    (item,) = read_batch(with_payload(encoded(0, 0, -1, -1, 1, 3, b"a\xffb", 0)), 0)
    assert item.headers == (("a\ufffdb", b""),)


def test_a_timestamp_delta_has_64_bits_and_may_be_negative() -> None:
    # F20, F24, T11
    deltas = (-1001, 2**62, -(2**63))
    data = b"".join(encoded(delta, i, -1, -1, 0) for i, delta in enumerate(deltas))
    times = [item.timestamp_ms for item in read_batch(with_payload(data, 3), 0)]
    assert times == [-1, 2**62 + 1000, -(2**63) + 1000]


def test_timestamps_wrap_in_64_bits() -> None:
    # F24, T11
    (item,) = read_batch(with_payload(encoded(2**63 - 1, 0, -1, -1, 0)), 0)
    assert item.timestamp_ms == -(2**63) + 999


def test_a_records_own_attributes_have_no_meaning() -> None:
    # F21
    data = with_payload(encoded(0, 0, -1, -1, 0, attributes=0xFF))
    assert read_batch(data, 0) == [Record(0, 1000, 0, None, None)]


@pytest.mark.parametrize(
    "payload",
    [
        write_varint(-1),
        write_varint(100),
        b"\xff\xff\xff\xff\xff",
        encoded(0, 0, 5, b"key"),
        encoded(0, 0, 2**31 - 1, b"key"),
        encoded(0, 0, -1, 9, b"v"),
        encoded(0, 0, -1, -1),
        encoded(0, 0, -1, -1, -1),
        encoded(0, 0, -1, -1, 100),
        encoded(0, 0, -1, -1, 1, -1, 0),
        encoded(0, 0, -1, -1, 1, 9, b"h", 0),
        encoded(0, 0, -1, -1, 1, 1, b"h", 9),
        encoded(0, 0, -1, -1, 0, b"rest"),
        encoded(),
        write_varint(0),
    ],
)
def test_a_malformed_record_is_a_fault_of_the_batch(payload: bytes) -> None:
    # F20, F25, T13
    with pytest.raises(CorruptDataError) as caught:
        read_batch(with_payload(payload), 0)
    assert caught.value.fault == "records"


def test_bytes_behind_the_last_record_are_a_fault_of_the_batch() -> None:
    # F27, T13
    with pytest.raises(CorruptDataError, match="record_count: 1 bytes after the 1 records"):
        read_batch(with_payload(encoded(0, 0, -1, -1, 0) + b"\0"), 0)
