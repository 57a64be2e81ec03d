"""Avro's bytes, written by hand from its specification. Rules: docs/decoding.md F1270, F1271.

tests/spark/views/test_local_decoding.py compares the reader with Spark's.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import SchemaError
from kafkalog.lake.decoding.avro_reader import AvroReader, NotAvroError


def read(schema: Any, payload: bytes, reader: Any = None) -> Any:
    texts = json.dumps(schema), json.dumps(schema if reader is None else reader)
    return AvroReader(*texts).value(payload)


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
LIST = {"type": "array", "items": "long"}


@pytest.mark.parametrize(
    ("schema", "payload", "expected"),
    [
        ("null", b"", None),
        ("boolean", b"\x01", True),
        ("long", b"\x01", -1),
        ("long", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 2**63 - 1),
        ("string", "\x06ü!".encode(), "ü!"),
        ("float", b"\x00\x00\x00\x3f", 0.5),
        (ENUM, b"\x02", "B"),
        (["null", "string"], b"\x02\x02a", "a"),
        (["int", "string", "null"], b"\x02\x02a", {"member1": "a"}),
        (LIST, b"\x04\x02\x04\x00", [1, 2]),
        # A block with its size in bytes, then one without.
        (LIST, b"\x03\x04\x02\x04\x02\x06\x00", [1, 2, 3]),
        ({"type": "map", "values": "int"}, b"\x02\x02a\x02\x00", [("a", 1)]),
    ],
)
def test_a_value(schema: Any, payload: bytes, expected: Any) -> None:
    assert read(schema, payload) == expected


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (["null", "string"], b"\x01\x02a"),  # branch -1
        (ENUM, b"\x01"),
        (ENUM, b"\x04"),
        ("long", b"\xff" * 12 + b"\x01"),
        ("int", b"\xff" * 6 + b"\x01"),
        ("string", b"\x03abc"),
        ("string", b"\x0aabc"),
        ("string", b"\x02\xff"),
        ("double", b"ab"),
        ("long", b""),
        ("long", b"\x02\x02"),
        (LIST, b"\x80\x80\x80\x80\x80\x80\x01"),
        ({"type": "fixed", "name": "F", "size": 8}, b"ab"),
        (record(field("x", ["null", "R"])), b"\x02" * 100_000 + b"\x00"),
    ],
)
def test_what_is_not_of_the_schema(schema: Any, payload: bytes) -> None:
    reader = "null" if isinstance(schema, dict) and schema["type"] == "record" else None
    with pytest.raises(NotAvroError):
        read(schema, payload, reader)


def test_one_schema_is_read_into_another() -> None:
    # A field that is skipped, one that is wider, one by its former name, one with a default.
    writer = record(field("gone", LIST), field("n", "int"), field("old", "string"))
    reader = record(
        field("n", ["null", "double"]),
        field("new", "string", aliases=["old"]),
        field("more", ["null", "int"], default=None),
        field("list", LIST, default=[1]),
    )
    found = read(writer, b"\x02\x02\x00\x06\x02a", reader)
    assert found == {"n": 3.0, "new": "a", "more": None, "list": [1]}
    assert isinstance(found["n"], float)


def test_without_a_default_nothing_is_read() -> None:
    with pytest.raises(NotAvroError):
        read(record(), b"", record(field("more", "int")))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record(field("x", ["null", "R"])), "has itself inside"),
        ({"type": "array", "items": "null"}, "without bytes"),
        ("strin", "defined nowhere"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, "39 digits"),
        (5, "not an Avro schema"),
        ({"type": "record", "name": "R"}, "not an Avro schema"),
    ],
)
def test_a_schema_that_no_column_can_have(schema: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        read(schema, b"")


WHOLE = record(
    field("u", ["null", "long", "string"]),
    field("l", {"type": "array", "items": ENUM}),
    field("m", {"type": "map", "values": ["null", "bytes"]}),
)


@given(st.binary(max_size=40))
def test_any_bytes_give_a_value_or_one_error(payload: bytes) -> None:
    try:
        assert set(read(WHOLE, payload)) == {"u", "l", "m"}
    except NotAvroError:
        assert payload != b"\x00\x00\x00"
