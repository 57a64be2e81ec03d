"""Values and fields of made-up messages, byte by byte as the specification has them."""

import time
import tracemalloc
from typing import Any

import pytest

from kafkalog.errors import CorruptDataError, SchemaError
from kafkalog.messages.message_reader import read_message
from kafkalog.messages.message_writer import write_message
from kafkalog.messages.schema import Message, parse_message

UUID = "AAECAwQFBgcICQoLDA0ODw"
ALL_TYPES = [
    ("bool", b"\x01", True),
    ("int8", b"\xff", -1),
    ("int16", b"\x80\x00", -(2**15)),
    ("uint16", b"\xff\xff", 2**16 - 1),
    ("int32", b"\x80\0\0\0", -(2**31)),
    ("uint32", b"\xff\xff\xff\xff", 2**32 - 1),
    ("int64", b"\x7f" + b"\xff" * 7, 2**63 - 1),
    ("float64", b"\x3f\xf8" + b"\0" * 6, 1.5),
    ("uuid", bytes(range(16)), UUID),
    ("string", b"\0\x03\xe2\x82\xac", "€"),
    ("bytes", b"\0\0\0\x02\xff\x00", b"\xff\x00"),
    ("[]int16", b"\0\0\0\x02\0\x01\xff\xff", [1, -1]),
    ("[]string", b"\0\0\0\x02\0\x00\0\x01a", ["", "a"]),
]
FLEXIBLE = {
    "string": b"\x04\xe2\x82\xac",
    "bytes": b"\x03\xff\x00",
    "[]int16": b"\x03\0\x01\xff\xff",
    "[]string": b"\x03\x01\x02a",
}


def made(*fields: dict[str, Any], flexible: bool = False, **more: Any) -> Message:
    versions = {"versions": "0-3"} | ({"flexible": "0+"} if flexible else {})
    return parse_message({"name": "Made", "fields": list(fields), **versions, **more})


def field(field_type: str, **more: Any) -> dict[str, Any]:
    return {"name": "f", "type": field_type, **more}


@pytest.mark.parametrize(("field_type", "data", "value"), ALL_TYPES)
def test_a_value_lies_as_its_type_says(field_type: str, data: bytes, value: object) -> None:
    # F185
    plain, flexible = made(field(field_type)), made(field(field_type), flexible=True)
    assert read_message(plain, 0, b"??" + data + b"!", 2) == ({"f": value}, 2 + len(data))
    assert write_message(plain, 0, {"f": value}) == data
    compact = FLEXIBLE.get(field_type, data) + b"\0"
    assert read_message(flexible, 0, compact) == ({"f": value}, len(compact))
    assert write_message(flexible, 0, {"f": value}) == compact


@pytest.mark.parametrize(("field_type", "data", "value"), ALL_TYPES)
def test_a_value_cut_short_is_reported(field_type: str, data: bytes, value: object) -> None:
    for message, whole in (
        (made(field(field_type)), data),
        (made(field(field_type), flexible=True), FLEXIBLE.get(field_type, data) + b"\0"),
    ):
        for length in range(len(whole)):
            with pytest.raises(CorruptDataError) as caught:
                read_message(message, 0, whole[:length])
            assert caught.value.fault == "truncated"


@pytest.mark.parametrize("field_type", ["string", "bytes", "[]int32"])
def test_null_and_empty_are_different(field_type: str) -> None:
    # T39: length -1 and 0, in flexible versions 0 and 1.
    prefix = 2 if field_type == "string" else 4
    nullable = made(field(field_type, nullable="0+"))
    compact = made(field(field_type, nullable="0+"), flexible=True)
    empty = read_message(nullable, 0, b"\0" * prefix)[0]["f"]
    assert empty is not None
    assert not empty
    assert read_message(compact, 0, b"\x01\x00") == ({"f": empty}, 2)
    assert read_message(nullable, 0, b"\xff" * prefix) == ({"f": None}, prefix)
    assert read_message(compact, 0, b"\x00\x00") == ({"f": None}, 2)
    # Any negative length is null.
    assert read_message(nullable, 0, b"\x80" + b"\0" * (prefix - 1)) == ({"f": None}, prefix)
    for message, value in ((nullable, None), (nullable, empty), (compact, None), (compact, empty)):
        data = write_message(message, 0, {"f": value})
        assert read_message(message, 0, data) == ({"f": value}, len(data))


@pytest.mark.parametrize("field_type", ["string", "bytes", "[]int32"])
def test_null_is_reported_where_it_must_not_be(field_type: str) -> None:
    message = made(field(field_type, nullable="1+"))
    with pytest.raises(CorruptDataError) as caught:
        read_message(message, 0, b"\xff" * 4)
    assert (caught.value.fault, caught.value.position) == ("malformed", 0)
    with pytest.raises(SchemaError, match="f is"):
        write_message(message, 0, {"f": None})


def test_a_struct_that_may_be_null_has_a_mark_in_front() -> None:
    # T39: int8 -1 or 1, but of a tagged one 0 or 1; F186.
    structs = {"S": [{"name": "n", "type": "int8"}]}
    plain = made(field("S", nullable="0+"), flexible=True, structs=structs)
    tagged = made(field("S", nullable="0+", tag=0, default=None), flexible=True, structs=structs)
    for message, present, absent in (
        (plain, b"\x01\x05\x00" + b"\x00", b"\xff" + b"\x00"),
        (tagged, b"\x01\x00\x03" + b"\x01\x05\x00", b"\x00"),
    ):
        assert read_message(message, 0, present) == ({"f": {"n": 5}}, len(present))
        assert read_message(message, 0, absent) == ({"f": None}, len(absent))
        assert write_message(message, 0, {"f": {"n": 5}}) == present
        assert write_message(message, 0, {"f": None}) == absent
    assert read_message(tagged, 0, b"\x01\x00\x01\x00")[0] == {"f": None}


def test_a_tagged_struct_whose_default_is_not_null_can_be_null() -> None:
    # T39: as in ConsumerGroupMemberMetadataValue. Absent, its fields have their defaults.
    structs = {"S": [{"name": "n", "type": "int8", "default": -1}]}
    message = made(field("S", nullable="0+", tag=0), flexible=True, structs=structs)
    assert read_message(message, 0, b"\x00")[0] == {"f": {"n": -1}}
    assert read_message(message, 0, b"\x01\x00\x01\x00")[0] == {"f": None}
    assert write_message(message, 0, {"f": None}) == b"\x01\x00\x01\x00"
    assert write_message(message, 0, {}) == b"\x00"


def test_tagged_fields_are_written_by_tag_where_they_are_not_the_default() -> None:
    # F187
    message = made(
        {"name": "second", "type": "int8", "tag": 2, "default": 5},
        {"name": "first", "type": "int8", "tag": 1},
        {"name": "plain", "type": "int8"},
        flexible=True,
    )
    values = {"second": 7, "first": 3, "plain": 1}
    data = b"\x01" + b"\x02" + b"\x01\x01\x03" + b"\x02\x01\x07"
    assert write_message(message, 0, values) == data
    assert read_message(message, 0, data) == (values, len(data))
    assert write_message(message, 0, {"second": 5, "first": 0, "plain": 1}) == b"\x01\x00"


def test_a_known_tagged_field_must_fill_its_size() -> None:
    message = made(field("int16", tag=0), flexible=True)
    for data in (b"\x01\x00\x03\0\x01\x00", b"\x01\x00\x01\0\x01\x00"):
        with pytest.raises(CorruptDataError) as caught:
            read_message(message, 0, data)
        assert caught.value.fault == "malformed"


def test_a_string_is_at_most_as_long_as_an_int16_says() -> None:
    message = made(field("string"), flexible=True)
    longest = {"f": "x" * 32767}
    data = write_message(message, 0, longest)
    assert read_message(message, 0, data) == (longest, len(data))
    with pytest.raises(CorruptDataError) as caught:
        read_message(message, 0, b"\x81\x80\x02" + b"x" * 32768 + b"\0")
    assert caught.value.fault == "malformed"
    with pytest.raises(SchemaError, match="32767"):
        write_message(message, 0, {"f": "x" * 32768})


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("field_type", ["string", "bytes", "[]int8", "[]S", "[]string", "[]uuid"])
def test_a_forged_length_costs_nothing(field_type: str, flexible: bool) -> None:
    # F191: nothing is allocated, or looped over, that the bytes cannot hold.
    structs = {"S": [{"name": "n", "type": "int8", "versions": "1+"}]}
    version = 0 if flexible or field_type != "[]S" else 1
    message = made(field(field_type), flexible=flexible, structs=structs)
    huge = b"\xff\xff\xff\xff\x0f" if flexible else b"\x7f\xff\xff\xff"
    tracemalloc.start()
    begun = time.perf_counter()
    with pytest.raises(CorruptDataError):
        read_message(message, version, huge + b"\0" * 100)
    assert time.perf_counter() - begun < 1
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_forged_number_of_tagged_fields_costs_nothing() -> None:
    with pytest.raises(CorruptDataError, match="tagged fields"):
        read_message(made(flexible=True), 0, b"\xff\xff\xff\xff\x0f" + b"\0" * 100)


def test_elements_without_a_byte_are_not_a_schema() -> None:
    structs = {"S": [{"name": "n", "type": "int8", "versions": "1+"}]}
    with pytest.raises(SchemaError, match="no byte"):
        read_message(made(field("[]S"), structs=structs), 0, b"\x7f\xff\xff\xff")


@pytest.mark.parametrize(
    ("field_type", "value"),
    [
        ("int8", 128),
        ("int8", "1"),
        ("uint16", -1),
        ("bool", None),
        ("string", b"a"),
        ("bytes", "a"),
        ("uuid", "short"),
        ("uuid", "AAECAwQFBgcICQoLDA0OD€"),
        ("[]int8", 1),
        ("[]int8", [None]),
        ("S", 1),
        ("S", {"other": 1}),
    ],
)
def test_a_value_that_a_field_cannot_have_is_not_written(field_type: str, value: object) -> None:
    message = made(field(field_type), structs={"S": [{"name": "n", "type": "int8"}]})
    with pytest.raises(SchemaError):
        write_message(message, 0, {"f": value})


def test_only_fields_of_the_version_are_written() -> None:
    message = made(field("int8", versions="1-2"))
    assert write_message(message, 1, {"f": 1}) == b"\x01"
    assert write_message(message, 3, {}) == b""
    with pytest.raises(SchemaError, match="Made has no f in version 3"):
        write_message(message, 3, {"f": 1})


@pytest.mark.parametrize("version", [-1, 4])
def test_a_version_that_a_message_does_not_have_is_an_error(version: int) -> None:
    for action in (
        lambda: read_message(made(), version, b""),
        lambda: write_message(made(), 9, {}),
    ):
        with pytest.raises(SchemaError, match="Made has versions 0-3"):
            action()


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "f", "type": "varint"},
        {"name": "f", "type": "Nowhere"},
        {"name": "f", "type": "int8", "ignorable": True},
        {"name": "f", "type": "int8", "versions": "1-"},
        {"name": "f", "type": "S"},
    ],
)
def test_a_schema_that_means_nothing_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        made(wrong, structs={"S": [{"name": "again", "type": "[]S"}]})
