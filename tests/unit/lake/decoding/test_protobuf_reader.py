"""Protobuf's messages as values of columns. Rules: F1343 and F1344 (docs/decoding.md).

Bytes are those of the guide to Protobuf's encoding, or of Google's library; types and values those
of Spark's from_protobuf (docs/decisions/0103-protobuf-compared-with-spark.md).
"""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from kafkalog.columns.arrow_types import arrow_type
from kafkalog.errors import SchemaError
from kafkalog.lake.decoding.payload_arrays import PayloadDecoder
from kafkalog.lake.decoding.protobuf_reader import NotProtobufError, ProtobufReader
from kafkalog.messages.payload_formats import ConfluentFormat, ProtobufFormat, SchemaUse
from tests.support.messages.descriptor_sets import descriptor_set

# The messages of the guide to the encoding, Test1 to Test5.
GUIDE = descriptor_set(
    "guide.proto",
    "Test1: int32 a = 1",
    "Test2: string b = 2",
    "Test3: Test1 c = 3",
    "Test4: string d = 4; repeated int32 e = 5",
    "Test5: repeated int32 f = 6",
)


def value(message: str, payload: str, descriptors: bytes = GUIDE) -> Any:
    return ProtobufReader(message, descriptors).value(bytes.fromhex(payload))


@pytest.mark.parametrize(
    ("message", "payload", "expected"),
    [
        ("Test1", "089601", {"a": 150}),
        ("Test2", "120774657374696e67", {"b": "testing"}),
        ("Test3", "1a03089601", {"c": {"a": 150}}),
        ("Test4", "220568656c6c6f280128022803", {"d": "hello", "e": [1, 2, 3]}),
        ("Test5", "3206038e029ea705", {"f": [3, 270, 86942]}),
        # Last one wins, and a packed field can come unpacked.
        ("Test1", "0801089601", {"a": 150}),
        ("Test5", "300330 8e0230 9ea705", {"f": [3, 270, 86942]}),
        # Unknown fields are skipped.
        ("Test1", "f20102ffff", {"a": None}),
        ("Test4", "", {"d": None, "e": []}),
    ],
)
def test_payloads_of_the_guide(message: str, payload: str, expected: Any) -> None:
    assert value(message, payload) == expected


@pytest.mark.parametrize(
    "payload", ["08", "0a", "1205746573", "07", "00", "08" + 10 * "ff" + "7f", "1001"]
)
def test_other_bytes_are_no_message(payload: str) -> None:
    with pytest.raises(NotProtobufError):
        value("Test2", payload)


def test_text_that_is_not_utf_8_is_no_value() -> None:
    with pytest.raises(NotProtobufError):
        value("Test2", "1201ff")


# With a closed enum, one with two names for a number, and texts that Google's library lets pass.
PROTO2 = text_format.Parse(
    """
    file {
      name: "old.proto"
      package: "shop"
      message_type {
        name: "Old"
        field { name: "text" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
        field { name: "size" number: 2 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: "Size" }
        field { name: "named" number: 3 label: LABEL_REPEATED type: TYPE_MESSAGE
                type_name: "NamedEntry" }
        field { name: "texts" number: 4 label: LABEL_REPEATED type: TYPE_STRING }
        field { name: "at" number: 5 label: LABEL_OPTIONAL type: TYPE_MESSAGE
                type_name: "Timestamp" }
        field { name: "old" number: 6 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: "Part" }
        nested_type {
          name: "NamedEntry"
          options { map_entry: true }
          field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
          field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 }
        }
      }
      message_type {
        name: "Timestamp"
        field { name: "seconds" number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 }
        field { name: "nanos" number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 }
      }
      message_type {
        name: "Part"
        field { name: "a" number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 }
      }
      enum_type {
        name: "Size"
        options { allow_alias: true }
        value { name: "SMALL" number: 1 }
        value { name: "TINY" number: 1 }
      }
    }
    """,
    descriptor_pb2.FileDescriptorSet(),
).SerializeToString()


@pytest.mark.parametrize("name", ["shop.Old", "Old"])
def test_of_two_names_for_a_number_the_first_counts_and_a_package_can_be_left_out(
    name: str,
) -> None:
    assert value(name, "1001", PROTO2)["size"] == "SMALL"


@pytest.mark.parametrize(
    "payload",
    [
        # Texts that are not UTF-8: a field, one of several, a key of a map.
        *("0a01ff", "2201ff", "1a050a01ff1001"),
        # A number that the enum does not have.
        "1007",
        # Fields of another wire type: of the message, of one within it, of a time.
        *("0803", "32020a00", "2a020a00"),
        # An entry of a map with a third field.
        "1a070a016b10011801",
    ],
)
def test_a_field_that_is_not_of_its_type_is_no_value(payload: str) -> None:
    # F1344, F1421
    with pytest.raises(NotProtobufError):
        value("Old", payload, PROTO2)
    decoder = PayloadDecoder("value", ProtobufFormat("Old", PROTO2))
    rows = pa.RecordBatch.from_pydict({"value": [bytes.fromhex(payload), b""]})
    values, errors = (array.to_pylist() for array in decoder.arrays(rows))
    assert errors == ["not Protobuf of message Old", None]
    assert values[0] is None and values[1]["texts"] == []


def test_a_time_beyond_what_a_column_holds_is_no_value() -> None:
    decoder = PayloadDecoder("value", ProtobufFormat("Old", PROTO2))
    payloads = [bytes.fromhex("2a0a08ffffffffffffffff7f"), bytes.fromhex("2a020801")]
    values, errors = decoder.arrays(pa.RecordBatch.from_pydict({"value": payloads}))
    assert errors.to_pylist() == ["not Protobuf of message Old", None]
    assert values[1].as_py()["at"].timestamp() == 1


ALL = descriptor_set(
    "all.proto",
    "Empty:",
    "Timestamp: int64 seconds = 1; int32 nanos = 2",
    "All: uint32 u32 = 1; uint64 u64 = 2; fixed32 f32 = 3; fixed64 f64 = 4; sint32 s32 = 5;"
    " bool yes = 6; bytes raw = 7; Color color = 8; double d = 9; float f = 10;"
    " Timestamp at = 11; map string int64 counts = 12; optional int32 maybe = 13; Empty none = 14;"
    " repeated Color colors = 15",
    enums={"Color": ["NONE", "RED"]},
)


def encoded(descriptors: bytes, message: str, **fields: Any) -> bytes:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))(**fields)
    return bytes(made.SerializeToString())


def test_types_are_those_of_spark() -> None:
    found = {each["name"]: each["type"] for each in ProtobufReader("All", ALL).spark_type["fields"]}
    counts = found.pop("counts")
    assert (counts["type"], counts["keyType"], counts["valueType"]) == ("map", "string", "long")
    assert found.pop("colors")["elementType"] == "string"
    assert found == {
        "u32": "long",
        "u64": "decimal(20,0)",
        "f32": "integer",
        "f64": "long",
        "s32": "integer",
        "yes": "boolean",
        "raw": "binary",
        "color": "string",
        "d": "double",
        "f": "float",
        "at": "timestamp",
        "maybe": "integer",
    }


def test_values_are_those_of_spark_and_fit_their_columns() -> None:
    largest = {"u32": 2**32 - 1, "u64": 2**64 - 1, "f32": 2**32 - 1, "f64": 2**64 - 1}
    payload = encoded(
        ALL,
        "All",
        **largest,
        s32=-5,
        yes=True,
        raw=b"\xff",
        color=1,
        d=0.5,
        f=0.25,
        at={"seconds": -1, "nanos": 999_999_999},
        counts={"b": 2, "a": 1},
        maybe=0,
        colors=[0, 1, 7],
    )
    reader = ProtobufReader("All", ALL)
    array = pa.array([reader.value(payload)], arrow_type(reader.spark_type))
    row = array.to_pylist()[0]
    assert row.pop("at").timestamp() == pytest.approx(-0.000001)
    assert row == {
        "u32": 2**32 - 1,
        "u64": Decimal(2**64 - 1),
        "f32": -1,
        "f64": -1,
        "s32": -5,
        "yes": True,
        "raw": b"\xff",
        "color": "RED",
        "d": 0.5,
        "f": 0.25,
        "counts": [("a", 1), ("b", 2)],
        "maybe": 0,
        "colors": ["NONE", "RED", "UNKNOWN_ENUM_VALUE_Color_7"],
    }


def test_what_is_zero_in_proto3_is_absent() -> None:
    row = ProtobufReader("All", ALL).value(encoded(ALL, "All", u32=0, yes=False, raw=b"", color=0))
    assert {name for name, found in row.items() if found is not None} == {"counts", "colors"}
    assert row["counts"] == row["colors"] == []


@pytest.mark.parametrize(
    ("message", "descriptors", "said"),
    [
        ("Tset1", GUIDE, "it has no message Tset1: did you mean Test1"),
        ("Empty", ALL, "has no field that a column can hold"),
        ("Node", descriptor_set("n.proto", "Node: Node next = 1"), "Node is within itself"),
        ("Test1", b"\xff", "not a descriptor set"),
    ],
)
def test_what_no_column_holds_is_refused(message: str, descriptors: bytes, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        ProtobufReader(message, descriptors)


def test_payloads_behind_schema_ids_need_the_indexes_of_the_message() -> None:
    used = SchemaUse(7, ProtobufFormat("Test1", GUIDE), b"\x02\x02")
    decoder = PayloadDecoder("value", ConfluentFormat([used], {}))
    head = b"\0\0\0\0\x07"
    payloads = [head + b"\x02\x02\x08\x96\x01", head + b"\0\x08\x96\x01", head + b"\x02\x02\x08"]
    rows = pa.RecordBatch.from_pydict({"value": payloads})
    values, errors, ids = (array.to_pylist() for array in decoder.arrays(rows))
    assert values == [{"a": 150}, None, None]
    assert errors == [
        None,
        "schema id 7: its message indexes lead to another message",
        "schema id 7: not Protobuf of message Test1",
    ]
    assert ids == [7, 7, 7]
