"""Values in Avro's and Protobuf's formats. Rule: docs/erasure.md F1262.

The bytes are those of fastavro 1.12 and of protoc's Python classes.
"""

import json

import pytest

from kafkalog.errors import SchemaError
from kafkalog.messages.decoding.avro_values import AvroValues
from kafkalog.messages.decoding.protobuf_values import ProtobufValues

_CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "id", "type": ["null", "string"]},
        {"name": "parent", "type": ["null", "Customer"]},
    ],
}
_ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": _CUSTOMER},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["A", "B"]}},
        {"name": "d", "type": "double"},
        {"name": "f", "type": "float"},
        {"name": "ok", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
        {"name": "fx", "type": {"type": "fixed", "name": "Fx", "size": 3}},
        {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}
_AVRO = bytes.fromhex(
    "ffffffffff3f020e637573742d3137020000040261085a6fc3ab00040278010279d8040002000000000000f83f"
    "000000bf010400ff6162634830303030303030302d303030302d303030302d303030302d303030303030303030"
    "303031"
)
_AVRO_VALUE = {
    "id": -(2**40),
    "customer": {"id": "cust-17", "parent": {"id": None, "parent": None}},
    "tags": ["a", "Zoë"],
    "counts": {"x": -1, "y": 300},
    "state": "B",
    "d": 1.5,
    "f": -0.5,
    "ok": True,
    "raw": b"\x00\xff",
    "fx": b"abc",
    "u": "00000000-0000-0000-0000-000000000001",
}
_PROTO = """syntax = "proto3";
package shop.v1; // a comment { message X
option java_package = "a{b";
message Order {
  reserved 9, 12 to 14;
  string id = 1 [json_name = "ID"];
  Customer customer = 2;
  repeated Item items = 3;
  map<string, int64> counts = 4;
  oneof way { string mail = 5; sint32 van = 6; }
  enum State { A = 0; B = 1; }
  State state = 7;
  repeated int32 numbers = 8;
  message Customer {
    string id = 1; fixed64 n = 2; double d = 3; bool ok = 4; bytes raw = 15; int64 neg = 16;
  }
  message Item { .shop.v1.Order.Customer owner = 1; uint32 count = 2; }
}
message Other { Order.Customer c = 1; }
"""
_PROTOBUF = bytes.fromhex(
    "0a036f2d31122d0a07637573742d313711110000000000000019000000000000f83f20017a02ff008001fdffff"
    "ffffffffffff011a0d0a090a07637573742d313810021a0b0a090a07637573742d313722050a01611007220b0a"
    "07637573742d313710093009380142040102ac02"
)


def test_avro_is_decoded() -> None:
    assert AvroValues(json.dumps(_ORDER)).decoded(_AVRO) == _AVRO_VALUE
    assert AvroValues('"string"').decoded(b"\0\0\0\0\1\x0ecust-17", 5) == "cust-17"


@pytest.mark.parametrize("size", range(len(_AVRO)))
def test_avro_that_is_cut_short_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="not Avro"):
        AvroValues(json.dumps(_ORDER)).decoded(_AVRO[:size])


def test_avro_of_another_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="bytes after the value"):
        AvroValues('"long"').decoded(b"\2\2")
    with pytest.raises(ValueError, match="items"):
        AvroValues('{"type": "array", "items": "null"}').decoded(b"\xfe\xff\xff\xff\xff\x01")
    with pytest.raises(SchemaError):
        AvroValues('"customer"')
    with pytest.raises(SchemaError):
        AvroValues('{"type": "record"}')


def test_protobuf_is_decoded() -> None:
    customer = {"id": "cust-17", "n": 17, "d": 1.5, "ok": True, "raw": b"\xff\x00", "neg": -3}
    values = ProtobufValues(_PROTO)
    assert values.decoded(_PROTOBUF, 0, (0,)) == {
        "id": "o-1",
        "customer": customer,
        "items": [{"owner": {"id": "cust-18"}, "count": 2}, {"owner": {"id": "cust-17"}}],
        "counts": {"a": 7, "cust-17": 9},
        "van": -5,
        "state": 1,
        "numbers": [1, 2, 300],
    }
    other = bytes.fromhex("0a090a07637573742d3137")
    assert values.decoded(other, 0, (1,)) == {"c": {"id": "cust-17"}}
    # Nested messages have places, too, and fields that the file lacks have their numbers.
    assert values.decoded(other[2:] + b"\x48\x05", 0, (0, 0)) == {"id": "cust-17", "9": [5]}


@pytest.mark.parametrize("data", [b"\x0a\x05ab", b"\x08", b"\x0f", b"\x02\x01", b"\xff" * 11])
def test_bytes_that_are_not_protobuf_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not Protobuf"):
        ProtobufValues(_PROTO).decoded(data, 0, (0,))


def test_a_file_that_ends_inside_a_message_is_refused() -> None:
    with pytest.raises(SchemaError):
        ProtobufValues("message Order { string id = ")
