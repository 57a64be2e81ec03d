"""How columns are decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.lake.decoding.decoding_requests import DecodingRequest, PayloadKind
from kafkalog.lake.decoding.registered_schemas import Record, RegistryChoice, read_registry
from kafkalog.messages.payload_formats import PayloadFormat, SchemaFormat
from kafkalog.messages.schema_registry import SCHEMAS_TOPIC
from kafkalog.spark.decoding.given_schemas import check_avro, given_format


def format_choices(
    spark: SparkSession, requests: Sequence[DecodingRequest]
) -> dict[str, Callable[[DataFrame], PayloadFormat]]:
    """Return, for each column to decode, how its format is chosen from the schema ids in the data.

    What was given is checked now, before any data is read; the ids are only read for Confluent's
    formats. Raises OptionError for what cannot be used, and for a jar that is missing.
    """
    return {request.column: _choice(request, spark) for request in requests}


def _choice(request: DecodingRequest, spark: SparkSession) -> Callable[[DataFrame], PayloadFormat]:
    given = None
    if request.schema is not None or request.kind is PayloadKind.STRING:
        given = given_format(request, spark)
    if given is not None and not request.kind.is_confluent:
        return lambda ids: given
    choice = registry_choice(request, spark, given)
    return lambda ids: choice.chosen(sorted(row.schema_id for row in ids.collect()))


def registry_choice(
    request: DecodingRequest, spark: SparkSession, given: SchemaFormat | None
) -> RegistryChoice:
    """Return what chooses by the schema ids in the data. Raises OptionError for a registry that
    cannot be read, and for a jar that is missing."""

    def check(schema: str) -> None:
        check_avro(request, spark, schema)

    if request.kind is PayloadKind.CONFLUENT_AVRO:
        check('"null"')
    registry = read_registry(request, lambda each: _records_of_schemas(each, spark))
    return RegistryChoice(request, registry, check, given)


def _records_of_schemas(request: DecodingRequest, spark: SparkSession) -> list[Record]:
    reader = spark.read.format("kafkalog").option("subscribe", SCHEMAS_TOPIC)
    reader = reader.option("columns", "offset,key,value").option("mode", request.mode)
    rows = reader.load(list(request.schemas_topic)).orderBy("offset").collect()
    return [(row.offset, _bytes_or_none(row.key), _bytes_or_none(row.value)) for row in rows]


def _bytes_or_none(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
