"""What processes decode without Spark is what Spark's functions decode: types, values and words.
Rules: docs/decoding.md F1270 to F1273.

Expectations are Spark's. Avro's bytes are written by hand, or are mutations of such bytes.
"""

import json
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from kafkalog.columns.arrow_types import arrow_type
from kafkalog.lake.decoding.ddl_types import ddl_type
from kafkalog.lake.decoding.payload_arrays import PayloadDecoder
from kafkalog.messages.payload_formats import (
    AvroFormat,
    ConfluentFormat,
    JsonFormat,
    PayloadFormat,
    SchemaUse,
    TextFormat,
)
from kafkalog.spark.decoding.decoded_frames import with_decoded
from tests.support.spark.avro_jar import needs_avro

pytestmark = [pytest.mark.spark, pytest.mark.deep]

WIDE = json.dumps(
    {
        "type": "record",
        "name": "Wide",
        "namespace": "shop",
        "fields": [
            {"name": "flag", "type": "boolean"},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "tags", "type": {"type": "map", "values": "int"}},
            {"name": "sizes", "type": {"type": "array", "items": ["null", "double"]}},
            {"name": "either", "type": ["null", "int", "string"]},
            {"name": "wider", "type": ["int", "long"]},
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
            {"name": "same", "type": ["null", "Kind"], "default": None},
        ],
    }
)
# true, day 1, 2 ms, 1.23, B, {"x": 3}, [null, 0.5], string "s", long 7, 01 02, branch 1: A
WIDE_BYTES = bytes.fromhex(
    "01 02 04 02 7b 02 02 0278 06 00 04 00 02 000000000000e03f 00 04 0273 02 0e 0102 02 00"
)
NARROW = json.dumps(
    {
        "type": "record",
        "name": "Wide",
        "namespace": "shop",
        "fields": [
            {"name": "more", "type": ["null", "string"], "default": None},
            {"name": "tags", "type": {"type": "map", "values": "long"}},
            {"name": "renamed", "aliases": ["either"], "type": ["null", "int", "string"]},
            {"name": "list", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
        ],
    }
)
JSON_TYPE = "id BIGINT, open STRING, day DATE, tags MAP<STRING, INT>, lines ARRAY<STRUCT<n: INT>>"


def mutations(payload: bytes, count: int) -> list[bytes]:
    """Cut, longer and changed payloads."""
    chance = random.Random(41)
    found = [payload[:size] for size in range(len(payload))] + [payload + b"\0"]
    for _ in range(count):
        changed = bytearray(payload)
        changed[chance.randrange(len(payload))] = chance.randrange(256)
        found.append(bytes(changed))
    return found


def assert_same(
    spark: SparkSession,
    payloads: Sequence[bytes | None],
    payload_format: PayloadFormat,
    *,
    is_lax: bool = False,
) -> list[Any]:
    """Compare both ways to decode; return the rows of both. Java does not look into what it skips:
    with `is_lax` it may decode more."""
    rows = [(number, payload) for number, payload in enumerate(payloads)]
    frame = spark.createDataFrame(rows, "number INT, value BINARY")
    decoded = with_decoded(frame, "value", payload_format).orderBy("number")
    by_spark = decoded.drop("number", "value").toArrow()
    batch = pa.RecordBatch.from_pydict({"value": pa.array(payloads, pa.binary())})
    decoder = PayloadDecoder("value", payload_format)
    ours = dict(zip(decoder.types, decoder.arrays(batch), strict=True))
    assert list(ours) == by_spark.column_names
    unlike = []
    for name, array in ours.items():
        expected = by_spark.column(name).cast(array.type)
        for place, payload in enumerate(payloads):
            mine, theirs = array[place].as_py(), value_of(expected[place])
            if theirs is not NOT_TEXT and repr(mine) != repr(theirs):
                unlike.append((name, payload, mine, theirs))
            elif theirs is NOT_TEXT:
                assert (mine, ours["value_error"][place].as_py()) == (
                    None,
                    "not Avro of the schema",
                )
    skipped = {payloads.index(payload) for _, payload, mine, theirs in unlike if mine is None}
    assert not [
        each
        for each in unlike
        if payloads.index(each[1]) not in not_text(by_spark) | (skipped if is_lax else set())
    ]
    return [value_of(each) for each in by_spark["value_decoded"]]


NOT_TEXT = object()


def value_of(scalar: pa.Scalar) -> Any:
    """Spark takes any bytes for a text in Avro."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return NOT_TEXT


def not_text(rows: pa.Table) -> set[int]:
    found = enumerate(rows["value_decoded"])
    return {place for place, scalar in found if value_of(scalar) is NOT_TEXT}


@needs_avro
@pytest.mark.parametrize("reader", [WIDE, NARROW])
def test_avro(spark: SparkSession, reader: str) -> None:
    payloads = [WIDE_BYTES, None, *mutations(WIDE_BYTES, 300)]
    first, *_ = assert_same(spark, payloads, AvroFormat(WIDE, reader), is_lax=reader == NARROW)
    assert first["tags"] == [("x", 3)]


@needs_avro
def test_avro_by_schema_ids(spark: SparkSession) -> None:
    uses = [SchemaUse(1, AvroFormat(WIDE, NARROW)), SchemaUse(2, AvroFormat(NARROW, NARROW))]
    narrow = b"\x02\x04hi\x00\x04\x02a\x02\x06\x00"
    bodies = [WIDE_BYTES, narrow, b""]
    payloads = [b"\0\0\0\0" + bytes([place]) + body for place in (1, 2, 3) for body in bodies]
    confluent = ConfluentFormat(uses, {})
    assert_same(spark, [*payloads, None, b"", b"\0\0", b"text", b"\1" + bytes(16)], confluent)


@pytest.mark.parametrize(
    "payloads",
    [
        [b'{"id":1,"open":"a","day":"2026-11-23","tags":{"x":1},"lines":[{"n":1},null]}', None],
        [b'{"open":{"a":[1,2]}}', b'{"open":[true]}', b'{"open":5}', b"null", b"{}", b""],
        [
            b'{"id":"1"}',
            b'{"lines":{}}',
            b'{"tags":[1]}',
            b"[1]",
            b"5",
            b"\xff",
            b"{",
            b'{"id":1}x',
        ],
    ],
)
def test_json(spark: SparkSession, payloads: list[bytes | None]) -> None:
    assert_same(spark, payloads, JsonFormat(json.dumps(ddl_type(JSON_TYPE))))
    simple = "id BIGINT, open STRING, day DATE, lines ARRAY<STRUCT<n: INT>>"
    assert_same(spark, payloads, JsonFormat(json.dumps(ddl_type(simple))))


def test_text(spark: SparkSession) -> None:
    assert_same(spark, ["grün".encode(), b"", None, b"a\xff", b"\xed\xa0\x80"], TextFormat())


@pytest.mark.parametrize(
    "text",
    [
        "id BIGINT",
        "id:BIGINT,note:STRING,lines:ARRAY<STRUCT<price:DECIMAL(9,2),day:DATE>>",
        "`a b` MAP<STRING, ARRAY<INT>> NOT NULL COMMENT 'with, comma', c TIMESTAMP_NTZ",
        "ARRAY<DOUBLE>",
        "BIGINT",
        "a STRUCT<>, b DEC, c NUMERIC(5)",
    ],
)
def test_ddl(spark: SparkSession, text: str) -> None:
    by_spark = DataType.fromDDL(text).jsonValue()
    assert arrow_type(ddl_type(text)) == _nullable(arrow_type(by_spark))


def _nullable(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([each.with_nullable(True) for each in data_type])
    return data_type
