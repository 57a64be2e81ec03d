"""How columns are decoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.messages.payload_formats import PayloadFormat
from kafkalog.spark.decoding.decoding_requests import DecodingRequest, PayloadKind
from kafkalog.spark.decoding.given_schemas import check_avro, given_format
from kafkalog.spark.decoding.registered_schemas import RegistryChoice


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
    if request.kind is PayloadKind.CONFLUENT_AVRO:
        check_avro(request, spark, '"null"')
    registry = RegistryChoice(request, spark, given)
    return lambda ids: registry.chosen(sorted(row.schema_id for row in ids.collect()))
