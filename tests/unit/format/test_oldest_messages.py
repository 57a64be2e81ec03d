"""Messages of the oldest layout, by vectors made by hand from the documents. F155 to F157, F159."""

import gzip
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptDataError
from kafkalog.format.oldest_messages import OldestEntry, entry_records, read_entries
from kafkalog.format.records import Record
from kafkalog.wire.compression import CompressionType, compress
from tests.support.logs.oldest_logs import entry

# The CRC-32 of `hello` is 3610a686, of nothing 0.
MAGIC_0 = bytes.fromhex("0000000a 00 3610a686 68656c6c6f")
MAGIC_1 = bytes.fromhex("0000000b 01 00 3610a686 68656c6c6f")
EMPTY = bytes.fromhex("00000005 00 00000000")


def by_hand(payload: bytes, attributes: int) -> bytes:
    """An entry of magic 1, made without kafkalog."""
    message = bytes([1, attributes]) + zlib.crc32(payload).to_bytes(4, "big") + payload
    return len(message).to_bytes(4, "big") + message


def payloads(data: bytes, offset: int = 0) -> list[bytes | None]:
    return [
        record.value
        for entry in read_entries(data)
        for record in entry_records(entry, offset + entry.position)
    ]


@pytest.mark.parametrize(
    ("data", "magic", "payload"), [(MAGIC_0, 0, b"hello"), (MAGIC_1, 1, b"hello"), (EMPTY, 0, b"")]
)
def test_an_entry_is_length_magic_attributes_checksum_and_payload(
    data: bytes, magic: int, payload: bytes
) -> None:
    # F155, F157
    (entry,) = read_entries(data)
    assert entry == OldestEntry(0, magic, 0, zlib.crc32(payload), payload)
    assert entry.size == len(data)


def test_a_record_has_neither_key_nor_time() -> None:
    # F155, F156: its offset is the place of its entry.
    first, second = read_entries(MAGIC_0 + MAGIC_1)
    assert entry_records(second, 100 + second.position) == [Record(114, -1, -1, None, b"hello")]
    assert (first.position, second.position) == (0, 14)


def snappy_block(data: bytes) -> bytes:
    """One raw block with a single literal of up to 60 bytes."""
    return bytes([len(data), (len(data) - 1) << 2]) + data


@pytest.mark.parametrize(
    ("attributes", "payload"),
    [
        pytest.param(1, gzip.compress(MAGIC_0 + MAGIC_1 + EMPTY), id="gzip"),
        pytest.param(2, snappy_block(MAGIC_0 + MAGIC_1 + EMPTY), id="snappy"),
    ],
)
def test_a_compressed_entry_holds_entries_that_share_its_offset(
    attributes: int, payload: bytes
) -> None:
    # F157
    (entry,) = read_entries(by_hand(payload, attributes))
    expected = [Record(77, -1, -1, None, value) for value in (b"hello", b"hello", b"")]
    assert entry_records(entry, 77) == expected


def test_other_attribute_bits_mean_nothing() -> None:
    # F157
    assert payloads(by_hand(b"hello", 0xFC)) == [b"hello"]


@pytest.mark.parametrize("size", range(1, len(MAGIC_1)))
def test_a_part_of_an_entry_at_the_end_is_left_out(size: int) -> None:
    # F143, F159: its length shows it.
    assert payloads(MAGIC_0 + MAGIC_1[:size]) == [b"hello"]


def test_an_entry_that_ends_with_the_bytes_is_whole() -> None:
    # F61, F159: a document's "less than the length of the file" would lose the last one.
    assert payloads(MAGIC_0) == [b"hello"]


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        pytest.param(bytes(40), "length", id="zeros"),
        pytest.param(bytes.fromhex("00000004 00000000"), "length", id="below the least length"),
        pytest.param(bytes.fromhex("ffffffff 00000000"), "length", id="a negative length"),
        pytest.param(bytes.fromhex("00000005 01 00 000000"), "length", id="magic 1 without room"),
        pytest.param(bytes.fromhex("00000005 02 00000000"), "length", id="magic 2"),
        pytest.param(MAGIC_0[:-1] + b"!", "checksum", id="another payload"),
        pytest.param(MAGIC_0[:5] + b"\0" + MAGIC_0[6:], "checksum", id="another checksum"),
    ],
)
def test_nonsense_behind_sound_entries_is_an_error_at_its_place(wrong: bytes, fault: str) -> None:
    # F159
    entries = read_entries(MAGIC_1 + wrong)
    assert next(entries).payload == b"hello"
    with pytest.raises(CorruptDataError) as raised:
        next(entries)
    assert (raised.value.fault, raised.value.position) == (fault, len(MAGIC_1))


@pytest.mark.parametrize(
    ("attributes", "payload", "fault"),
    [
        pytest.param(3, b"x", "codec", id="codec 3 did not exist"),
        pytest.param(1, b"no gzip", "compression", id="no gzip"),
        pytest.param(1, gzip.compress(b""), "record_count", id="nothing inside"),
        pytest.param(1, gzip.compress(MAGIC_0[:-1]), "record_count", id="only part of one inside"),
        pytest.param(1, gzip.compress(MAGIC_0[:-1] + b"!"), "checksum", id="a wrong one inside"),
        pytest.param(1, gzip.compress(bytes(1000)), "length", id="zeros inside"),
        pytest.param(
            1, gzip.compress(by_hand(gzip.compress(MAGIC_0), 1)), "records", id="twice compressed"
        ),
        pytest.param(1, gzip.compress(by_hand(bytes(10**7), 0)), "too_large", id="a bomb"),
    ],
)
def test_a_compressed_entry_without_sound_entries_is_an_error(
    attributes: int, payload: bytes, fault: str
) -> None:
    # F51, F157
    (_, entry) = read_entries(MAGIC_0 + by_hand(payload, attributes))
    with pytest.raises(CorruptDataError) as raised:
        entry_records(entry, 14, max_message_bytes=10**6)
    assert (raised.value.fault, raised.value.position) == (fault, 14)


def test_a_message_above_the_largest_size_is_an_error() -> None:
    # F143
    assert len(list(read_entries(MAGIC_1, max_message_bytes=11))) == 1
    with pytest.raises(CorruptDataError, match="too_large"):
        list(read_entries(MAGIC_1, max_message_bytes=10))


@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=5),
    st.sampled_from([CompressionType.GZIP, CompressionType.SNAPPY]),
    st.sampled_from([0, 1]),
)
def test_what_is_written_is_read_again(
    values: Sequence[bytes], codec: CompressionType, magic: int
) -> None:
    # F155, F157
    data = b"".join(entry(value, magic) for value in values)
    assert payloads(data) == list(values)
    compressed = entry(compress(codec, 1, b"".join(map(entry, values))), 1, codec)
    assert payloads(compressed) == list(values)


@given(st.binary(max_size=80))
def test_any_bytes_are_entries_or_one_error(data: bytes) -> None:
    end = 0
    try:
        for entry in read_entries(data):
            assert entry.position == end
            end += entry.size
    except CorruptDataError as error:
        assert error.position == end
    assert end <= len(data)
