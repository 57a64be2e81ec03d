"""How columns are decoded: by the schemas in the arguments, or by a registry. Spark is asked about
schemas before any data is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from kafkalog.errors import OptionError, SchemaError
from kafkalog.lake.decoding.decoding_requests import (
    DecodingRequest,
    PayloadKind,
    descriptor_bytes,
    schema_text,
    unusable_schema,
)
from kafkalog.lake.decoding.registered_schemas import Record, RegistryChoice, read_registry
from kafkalog.messages.json_schemas import json_schema_type
from kafkalog.messages.payload_formats import (
    AvroFormat,
    JsonFormat,
    PayloadFormat,
    ProtobufFormat,
    SchemaFormat,
    TextFormat,
)
from kafkalog.messages.schema_registry import SCHEMAS_TOPIC
from kafkalog.spark_versions import PACKAGES, SparkVersion


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


def given_format(request: DecodingRequest, spark: SparkSession) -> SchemaFormat:
    """Return the format by the schema in the arguments.

    Raises OptionError where it cannot be used, or a jar is missing.
    """
    try:
        return _format(request, spark)
    except SchemaError as error:
        raise unusable_schema(request, error) from error


def _format(request: DecodingRequest, spark: SparkSession) -> SchemaFormat:
    if request.kind is PayloadKind.STRING:
        return TextFormat()
    if request.kind.is_protobuf:
        message, descriptor = request.message or "", descriptor_bytes(request)
        arguments = F.lit(message), F.lit(descriptor)
        _check(request, spark, F.call_function("from_protobuf", F.lit(b""), *arguments))
        return ProtobufFormat(message, descriptor)
    text = schema_text(request)
    if request.kind in (PayloadKind.JSON, PayloadKind.CONFLUENT_JSON):
        return JsonFormat(_type_json(text))
    check_avro(request, spark, text)
    return AvroFormat(text, text)


def check_avro(request: DecodingRequest, spark: SparkSession, schema: str) -> None:
    """Raise SchemaError if Spark cannot read Avro as this schema, OptionError without its jar."""
    _check(request, spark, F.call_function("from_avro", F.lit(b""), F.lit(schema)))


def _check(request: DecodingRequest, spark: SparkSession, decoded: Column) -> None:
    try:
        _ = spark.range(0).select(decoded).schema
    except AnalysisException as error:
        if not (error.getCondition() or "").endswith("_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE"):
            raise SchemaError(_in_a_line(error)) from error
        how = _how_to_add(request, SparkVersion.of(spark.version))
        raise OptionError(request.argument("format"), request.kind.value, how) from error
    except Py4JJavaError as error:
        # Not all that spark-avro throws at a schema has a Python error of its own.
        message = str(error.java_exception.getMessage())
        raise SchemaError(message.strip().partition("\n")[0]) from error


def _type_json(text: str) -> str:
    try:
        if not text.lstrip().startswith("{"):
            return DataType.fromDDL(text).json()
        parsed = json.loads(text)
        is_sparks = parsed.get("type") == "struct" and "fields" in parsed
        return text if is_sparks else json.dumps(json_schema_type(text, {}))
    except (ValueError, RecursionError) as error:
        raise SchemaError(str(error)) from error
    except PySparkException as error:
        reason = _in_a_line(error)
        raise SchemaError(f"no file, Spark DDL (such as 'id BIGINT') or JSON: {reason}") from error


def _in_a_line(error: Exception) -> str:
    """Return what Spark says of a schema, without the query that it had it in."""
    return str(error).strip().partition("\n")[0]


def _how_to_add(request: DecodingRequest, version: SparkVersion) -> str:
    if request.kind.is_protobuf:
        package, artifact = "spark-protobuf", version.protobuf_package
    else:
        package, artifact = "spark-avro", version.avro_package
    packages = ",".join(filter(None, (artifact, version.delta_package)))
    return (
        f"the jar of {package}, which is not on the class path: give spark-submit --conf "
        f"{PACKAGES}={packages} (with Delta's, for Delta tables), and "
        "`kafkalog job` the same in PYSPARK_SUBMIT_ARGS='--conf ... pyspark-shell'"
    )
