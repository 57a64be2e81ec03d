"""Which registered schema decodes which id, before any payload is read. Rules: F287 to F293."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.errors import OptionError
from kafkalog.lake.decoding.decoding_requests import DecodingRequest, PayloadKind
from kafkalog.messages.payload_formats import (
    AvroFormat,
    ConfluentFormat,
    JsonFormat,
    ProtobufFormat,
    SchemaUse,
)
from kafkalog.spark.decoding.format_choices import registry_choice
from tests.support.messages.registry_records import reference, registered, removed
from tests.support.spark.avro_jar import needs_avro
from tests.support.spark.kafka_logs import write_records

SHOP = "syntax = 'proto3'; package shop; message Cart { message Line {} } message Order {}"
TURNED = "syntax = 'proto3'; package shop; message Order {} message Cart {}"
LINE = {"type": "object", "properties": {"n": {"type": "integer"}}}
ORDER = {"type": "object", "properties": {"line": {"$ref": "line.json"}}}
SCHEMAS = [
    registered(1, SHOP, schemaType="PROTOBUF"),
    registered(2, TURNED, version=2, schemaType="PROTOBUF"),
    registered(3, json.dumps(LINE), "line", schemaType="JSON"),
    registered(
        4, json.dumps(ORDER), "o", schemaType="JSON", references=[reference("line.json", "line")]
    ),
    registered(5, '"bytes"', "raw"),
    registered(6, '"string"', "text"),
    registered(7, "c2VjcmV0", "hidden", metadata={"properties": {"__enc__": "true"}}),
    registered(8, "{", "broken"),
    registered(9, '"int"', "gone"),
    removed("gone"),
]


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("logs"), "_schemas-0", SCHEMAS)


def asked(kind: PayloadKind, topic: Path, schema_id: int | None = None) -> DecodingRequest:
    return DecodingRequest("value", kind, None, None, schema_id, (str(topic),), "FAILFAST")


@pytest.mark.deep
def test_a_protobuf_message_is_looked_for_in_each_file(spark: SparkSession, topic: Path) -> None:
    request = asked(PayloadKind.CONFLUENT_PROTOBUF, topic)
    cart = ProtobufFormat("shop.Cart", b"")
    assert registry_choice(request, spark, cart).chosen([1, 2, 5, 99]) == ConfluentFormat(
        [SchemaUse(1, cart, b"\x00"), SchemaUse(2, cart, b"\x02\x02")],
        {5: "its schema is AVRO, not PROTOBUF"},
    )
    line = ProtobufFormat("shop.Cart.Line", b"")
    found = registry_choice(request, spark, line).chosen([1, 2])
    assert found.uses == [SchemaUse(1, line, b"\x04\x00\x00")]
    assert found.refused == {2: "there is no message shop.Cart.Line, but shop.Order, shop.Cart"}


def test_json_schemas_have_their_references(spark: SparkSession, topic: Path) -> None:
    found = registry_choice(asked(PayloadKind.CONFLUENT_JSON, topic), spark, None).chosen([3, 4])
    formats = {use.format for use in found.uses}
    assert len(formats) == 1
    (chosen,) = formats
    assert isinstance(chosen, JsonFormat)
    (field,) = json.loads(chosen.type_json)["fields"]
    assert (field["name"], field["type"]["fields"][0]["type"]) == ("line", "long")


@pytest.mark.deep
@needs_avro
def test_avro_schemas_that_cannot_be_used_say_why(spark: SparkSession, topic: Path) -> None:
    choice = registry_choice(asked(PayloadKind.CONFLUENT_AVRO, topic, 6), spark, None)
    found = choice.chosen([5, 6, 7, 8])
    assert found.uses == [SchemaUse(6, AvroFormat('"string"', '"string"'))]
    assert found.refused[5] == "only one of its schema and the reader's is bytes"
    assert found.refused[7] == "its schema is encrypted in _schemas"
    assert found.refused[8].startswith("not an Avro schema")


@pytest.mark.deep
@needs_avro
def test_avro_bytes_are_raw(spark: SparkSession, topic: Path) -> None:
    found = registry_choice(asked(PayloadKind.CONFLUENT_AVRO, topic), spark, None).chosen([5])
    assert found.uses == [SchemaUse(5, AvroFormat('"bytes"', '"bytes"', is_raw=True))]


@pytest.mark.deep
@needs_avro
def test_removed_schemas_are_the_last_to_be_read_as(spark: SparkSession, topic: Path) -> None:
    choice = registry_choice(asked(PayloadKind.CONFLUENT_AVRO, topic), spark, None)
    readers = [choice.chosen(ids).uses[0].format for ids in ([6, 9], [9])]
    assert [reader.reader for reader in readers if isinstance(reader, AvroFormat)] == [
        '"string"',
        '"int"',
    ]


@pytest.mark.deep
def test_no_usable_id_is_an_error_that_names_them(spark: SparkSession, topic: Path) -> None:
    choice = registry_choice(asked(PayloadKind.CONFLUENT_JSON, topic), spark, None)
    with pytest.raises(OptionError, match=r"found: 5 \(its schema is AVRO, not JSON\), 99 \(not"):
        choice.chosen([5, 99])
