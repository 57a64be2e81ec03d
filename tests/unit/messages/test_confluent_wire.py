"""Confluent's prefix. Rules: F285, F286, F293."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptDataError
from kafkalog.messages.confluent_wire import SchemaPrefix, read_schema_prefix, write_message_indexes

# As in Confluent's own tests of its serializers (serde.spec.js of its schema registry's client).
GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
GUID_BYTES = bytes.fromhex("0189791762233641869674299b90a802e2")


def test_an_id_is_four_bytes_behind_a_zero() -> None:
    assert read_schema_prefix(bytes.fromhex("0000000001") + b"data") == SchemaPrefix(
        1, None, None, 5
    )
    assert read_schema_prefix(bytes.fromhex("007fffffff")).schema_id == 2**31 - 1


def test_a_guid_is_sixteen_bytes_behind_a_one() -> None:
    assert read_schema_prefix(GUID_BYTES) == SchemaPrefix(None, GUID, None, 17)


@pytest.mark.parametrize(
    ("given_bytes", "indexes", "size"),
    [
        ("00", (0,), 6),  # instead of 0200, which readers take as well
        ("0200", (0,), 7),
        ("0202", (1,), 7),
        ("060200aa05", (1, 0, 341), 10),
    ],
)
def test_protobuf_has_message_indexes(
    given_bytes: str, indexes: tuple[int, ...], size: int
) -> None:
    data = bytes.fromhex("0000000007" + given_bytes) + b"message"
    assert read_schema_prefix(data, with_message_indexes=True) == SchemaPrefix(
        7, None, indexes, size
    )


def test_a_guid_has_message_indexes_as_well() -> None:
    prefix = read_schema_prefix(GUID_BYTES + b"\x04\x02\x00", with_message_indexes=True)
    assert (prefix.guid, prefix.message_indexes, prefix.size) == (GUID, (1, 0), 20)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\0\0\0\1", "4 bytes, shorter"),
        (GUID_BYTES[:-1], "16 bytes, shorter"),
        (b'{"a":1}', "the first byte is 7B"),
        (b"\xff\0\0\0\1", "the first byte is FF"),
        (b"\0\0\0\0\1", "message indexes"),
        (b"\0\0\0\0\1\x04\0", "2 message indexes"),
        (b"\0\0\0\0\1\x01", "-1 message indexes"),
        (b"\0\0\0\0\1" + b"\xff" * 6, "message indexes"),
    ],
)
def test_what_is_not_a_prefix_is_an_error(data: bytes, said: str) -> None:
    with pytest.raises(CorruptDataError, match=said):
        read_schema_prefix(data, with_message_indexes=True)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5).map(tuple))
def test_message_indexes_are_read_as_they_are_written(indexes: tuple[int, ...]) -> None:
    data = b"\0\0\0\0\1" + write_message_indexes(indexes)
    prefix = read_schema_prefix(data, with_message_indexes=True)
    assert (prefix.message_indexes, prefix.size) == (indexes, len(data))


@given(st.binary(max_size=30))
def test_any_bytes_give_a_prefix_or_one_error(data: bytes) -> None:
    try:
        prefix = read_schema_prefix(data, with_message_indexes=True)
    except CorruptDataError:
        return
    assert 5 < prefix.size <= len(data)
