"""Keys and values decoded to columns by Spark. Rules: F285, F286, F291 to F293.

Avro's bytes are written by hand from its specification: a long is a zig-zag varint, a string its
length and its bytes, a union the number of its branch and the value.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from kafkalog.errors import CorruptDataError
from kafkalog.messages.confluent_wire import read_schema_prefix
from kafkalog.messages.payload_formats import (
    AvroFormat,
    ConfluentFormat,
    JsonFormat,
    PayloadFormat,
    SchemaUse,
    TextFormat,
)
from kafkalog.spark.decoding.decoded_frames import schema_ids, with_decoded
from tests.support.spark.avro_jar import needs_avro

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
    }
)
# A later version: without the note, with a unit.
LATER_ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "unit", "type": "string", "default": "EUR"},
        ],
    }
)
FIELDS = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("id", "long"), ("note", "string"))
        ],
    }
)


def decoded(
    spark: SparkSession, payloads: Sequence[bytes | None], payload_format: PayloadFormat
) -> list[Row]:
    rows = [(number, payload) for number, payload in enumerate(payloads)]
    frame = spark.createDataFrame(rows, "number INT, value BINARY")
    found = with_decoded(frame, "value", payload_format).orderBy("number").drop("number", "value")
    return found.collect()


def test_text_is_strict_and_null_is_not_empty(spark: SparkSession) -> None:
    payloads = ["grün".encode(), b"", None, b"a\xff", b"\xed\xa0\x80"]
    assert decoded(spark, payloads, TextFormat()) == [
        ("grün", None),
        ("", None),
        (None, None),
        (None, "not UTF-8"),
        (None, "not UTF-8"),
    ]


NOT_JSON, OTHER_JSON = (None, "not JSON"), (None, "JSON, but not of the schema")


JSON_CASES: list[tuple[bytes | None, tuple[Any, str | None]]] = [
    (b'{"id":1,"note":"a"}', ((1, "a"), None)),
    (b' {"id": 9007199254740993}\n', ((9007199254740993, None), None)),
    (b'{"other":1}', ((None, None), None)),
    (b"null", (None, None)),
    (None, (None, None)),
    (b"", NOT_JSON),
    (b"{", NOT_JSON),
    (b'{"id":1} x', NOT_JSON),
    (b'{"id":1}{"id":2}', NOT_JSON),
    (b'{"id":1},{"id":2}', NOT_JSON),
    (b'{"id":1}}{', NOT_JSON),
    (b'{"id":1}, "rest":"x"', NOT_JSON),
    (b'{"id":01}', NOT_JSON),
    (b'{"id":1,}', NOT_JSON),
    (b'{"note":"\xff"}', NOT_JSON),
    (b'{"id":1}][{"id":2}', OTHER_JSON),
    (b"{'id':1}", OTHER_JSON),
    (b'{"id":"1"}', OTHER_JSON),
    (b'{"id":1.5,"note":"a"}', OTHER_JSON),
    (b'{"id":99999999999999999999}', OTHER_JSON),
    (b"[1]", OTHER_JSON),
    (b"5", OTHER_JSON),
]


@pytest.mark.deep
def test_json_counts_as_a_whole(spark: SparkSession) -> None:
    found = decoded(spark, [payload for payload, _ in JSON_CASES], JsonFormat(FIELDS))
    assert list(zip([payload for payload, _ in JSON_CASES], found, strict=True)) == JSON_CASES


@pytest.mark.deep
def test_json_need_not_be_an_object(spark: SparkSession) -> None:
    assert decoded(spark, [b"5", b'"5"'], JsonFormat('"long"')) == [(5, None), OTHER_JSON]
    several = '{"type":"array","elementType":"long","containsNull":true}'
    assert decoded(spark, [b"[1,null]", b"[]"], JsonFormat(several)) == [
        ([1, None], None),
        ([], None),
    ]


SOUND = b"\x0e\x02\x04hi"  # 7, branch 1: "hi"
NOT_AVRO = (None, "not Avro of the schema")


@pytest.mark.deep
@needs_avro
def test_avro_counts_as_a_whole(spark: SparkSession) -> None:
    cut = [SOUND[:size] for size in range(len(SOUND))]
    payloads = [SOUND, b"\x0e\x00", None, *cut, SOUND + b"\0", b"\x0e\x04", b"\xff" * 12]
    assert decoded(spark, payloads, AvroFormat(ORDER, ORDER)) == [
        ((7, "hi"), None),
        ((7, None), None),
        (None, None),
        *[NOT_AVRO] * (len(cut) + 3),
    ]


@pytest.mark.deep
@needs_avro
def test_avro_of_one_schema_is_read_into_another(spark: SparkSession) -> None:
    assert decoded(spark, [SOUND], AvroFormat(ORDER, LATER_ORDER)) == [((7, "EUR"), None)]
    assert decoded(spark, [SOUND], AvroFormat(ORDER, '"long"')) == [NOT_AVRO]


@pytest.mark.deep
@needs_avro
def test_avro_need_not_be_a_record(spark: SparkSession) -> None:
    maybe = '["null","long"]'
    assert decoded(spark, [b"\x00", b"\x02\x0e", b"\x04"], AvroFormat(maybe, maybe)) == [
        (None, None),
        (7, None),
        NOT_AVRO,
    ]
    text = '"string"'
    assert decoded(spark, [b"\x04hi", b"\x04h"], AvroFormat(text, text)) == [("hi", None), NOT_AVRO]


def behind_id(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


@needs_avro
def test_each_schema_id_is_read_by_its_own_schema(spark: SparkSession) -> None:
    uses = [
        SchemaUse(1, AvroFormat(ORDER, LATER_ORDER)),
        SchemaUse(300, AvroFormat(LATER_ORDER, LATER_ORDER)),
    ]
    payloads = [
        behind_id(1, SOUND),
        behind_id(300, b"\x10\x06USD"),
        None,
        behind_id(300, SOUND),
        behind_id(2, SOUND),
        behind_id(9, SOUND),
    ]
    confluent = ConfluentFormat(uses, {2: "its schema is JSON, not AVRO"})
    assert decoded(spark, payloads, confluent) == [
        ((7, "EUR"), None, 1),
        ((8, "USD"), None, 300),
        (None, None, None),
        (None, "schema id 300: not Avro of the schema", 300),
        (None, "schema id 2: its schema is JSON, not AVRO", 2),
        (None, "schema id 9: its schema is not in _schemas", 9),
    ]


@pytest.mark.deep
def test_avro_bytes_are_the_payload_itself(spark: SparkSession) -> None:
    confluent = ConfluentFormat([SchemaUse(1, AvroFormat('"bytes"', '"bytes"', True))], {})
    payloads = [behind_id(1, b"\x04raw"), behind_id(1, b"")]
    assert decoded(spark, payloads, confluent) == [(b"\x04raw", None, 1), (b"", None, 1)]


JSON_BY_ID = ConfluentFormat([SchemaUse(1, JsonFormat(FIELDS))], {})


@pytest.mark.deep
def test_json_behind_a_schema_id(spark: SparkSession) -> None:
    payloads = [behind_id(1, b'{"id":1}'), behind_id(1, b""), behind_id(1, b"null")]
    assert decoded(spark, payloads, JSON_BY_ID) == [
        ((1, None), None, 1),
        (None, "schema id 1: not JSON", 1),
        (None, None, 1),
    ]


@pytest.mark.deep
def test_what_has_no_schema_id_says_so(spark: SparkSession) -> None:
    payloads = [b"", b"\0\0\0\1", b'{"id":1}', b"\x01" + bytes(16)]
    assert decoded(spark, payloads, JSON_BY_ID) == [
        (None, "empty, without a schema id", None),
        (None, "4 bytes, shorter than a schema id's prefix", None),
        (None, "not a schema id: the first byte is 7B, not 00", None),
        (None, "a schema's GUID in place of its id, which is not read yet", None),
    ]


@pytest.mark.deep
def test_a_guid_in_a_header_says_so(spark: SparkSession) -> None:
    headers = [Row(key="__value_schema_id", value=bytearray(b"\1" + bytes(16)))]
    rows = [(behind_id(1, b"{}"), headers), (behind_id(1, b"{}"), []), (behind_id(1, b"{}"), None)]
    schema = "value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    found = with_decoded(spark.createDataFrame(rows, schema), "value", JSON_BY_ID)
    said = "its schema's GUID is in header __value_schema_id, which is not read yet"
    assert [row.value_error for row in found.collect()] == [said, None, None]


@pytest.mark.deep
def test_the_opening_tells_protobuf_messages_apart(spark: SparkSession) -> None:
    # JSON in place of Protobuf, which needs a jar: the opening is the same for all formats.
    confluent = ConfluentFormat([SchemaUse(1, JsonFormat('"long"'), b"\x04\x02\x00")], {})
    payloads = [behind_id(1, b"\x04\x02\x005"), behind_id(1, b"\x005"), behind_id(1, b"")]
    other = "schema id 1: its message indexes lead to another message"
    assert decoded(spark, payloads, confluent) == [(5, None, 1), *[(None, other, 1)] * 2]


@pytest.mark.deep
def test_prefixes_are_read_as_the_plain_reader_reads_them(spark: SparkSession) -> None:
    payloads = [
        *(bytes([first]) + bytes.fromhex(rest) for first in (0, 1, 2) for rest in ("", "00000007")),
        *(behind_id(number, b"x") for number in (0, 1, 255, 256, 2**31 - 1, 2**32 - 1)),
        b"\1" + bytes(16),
    ]
    found = decoded(spark, payloads, JSON_BY_ID)
    assert [row.value_schema_id for row in found] == [plain_id(payload) for payload in payloads]


def plain_id(payload: bytes) -> int | None:
    try:
        return read_schema_prefix(payload).schema_id
    except CorruptDataError:
        return None


@pytest.mark.deep
def test_the_schema_ids_of_a_column(spark: SparkSession) -> None:
    values = [behind_id(3, b"a"), behind_id(3, b""), behind_id(1, b""), b"", b"text", None]
    frame = spark.createDataFrame([(value,) for value in values], "key BINARY")
    found = schema_ids(frame, "key").orderBy(F.col("schema_id")).collect()
    assert [row.schema_id for row in found] == [1, 3]
