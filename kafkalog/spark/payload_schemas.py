"""From what was asked for to how payloads are decoded: schemas are read, checked and chosen."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from kafkalog.errors import OptionError, SchemaError
from kafkalog.messages.avro_schemas import read_avro_schema, standalone_avro_schema
from kafkalog.messages.confluent_wire import write_message_indexes
from kafkalog.messages.json_schemas import json_schema_type
from kafkalog.messages.payload_formats import (
    AvroFormat,
    ConfluentFormat,
    JsonFormat,
    PayloadFormat,
    ProtobufFormat,
    SchemaFormat,
    SchemaUse,
    TextFormat,
)
from kafkalog.messages.proto_files import message_place
from kafkalog.messages.schema_registry import (
    SCHEMAS_TOPIC,
    RegisteredSchema,
    SchemaRegistry,
    SchemaState,
    read_schema_registry,
)
from kafkalog.spark.decoding_arguments import (
    DecodingRequest,
    PayloadKind,
    descriptor_bytes,
    schema_text,
)

_logger = logging.getLogger(__name__)
_REGISTRY_TYPES = {
    PayloadKind.CONFLUENT_AVRO: "AVRO",
    PayloadKind.CONFLUENT_JSON: "JSON",
    PayloadKind.CONFLUENT_PROTOBUF: "PROTOBUF",
}


def format_choices(
    spark: SparkSession, requests: Sequence[DecodingRequest]
) -> dict[str, Callable[[DataFrame], PayloadFormat]]:
    """For each column asked for how its format is chosen, given the schema ids in the data.

    What was given is checked now, before any data is read; the ids are only read for Confluent's
    formats. Raises OptionError for what cannot be used, and for a jar that is missing.
    """
    return {request.column: _choice(request, spark) for request in requests}


def _choice(request: DecodingRequest, spark: SparkSession) -> Callable[[DataFrame], PayloadFormat]:
    if request.schema is not None or request.kind is PayloadKind.STRING:
        given = given_format(request, spark)
        if not request.kind.is_confluent:
            return lambda ids: given
    if request.kind is PayloadKind.CONFLUENT_AVRO:
        _check_avro(request, spark, '"null"')
    chooser = _Chooser(request, spark, read_registry(request, spark))
    return lambda ids: chooser.chosen(sorted(row.schema_id for row in ids.collect()))


def given_format(request: DecodingRequest, spark: SparkSession) -> SchemaFormat:
    """The format by the schema in the arguments. Raises OptionError if it cannot be used."""
    if request.kind is PayloadKind.STRING:
        return TextFormat()
    if request.kind.is_protobuf:
        format_ = ProtobufFormat(request.message or "", descriptor_bytes(request))
        arguments = F.lit(format_.message), F.lit(format_.descriptor)
        _check(request, spark, F.call_function("from_protobuf", F.lit(b""), *arguments))
        return format_
    text = schema_text(request)
    if request.kind in (PayloadKind.JSON, PayloadKind.CONFLUENT_JSON):
        return JsonFormat(_type_json(request, text))
    try:
        read_avro_schema(text)
    except SchemaError as error:
        raise OptionError(request.argument("schema"), request.schema, str(error)) from error
    _check_avro(request, spark, text)
    return AvroFormat(text, text)


def read_registry(request: DecodingRequest, spark: SparkSession) -> SchemaRegistry:
    """The schemas in the segments of `_schemas`."""
    reader = spark.read.format("kafkalog").option("subscribe", SCHEMAS_TOPIC)
    reader = reader.option("columns", "offset,key,value").option("mode", request.mode)
    rows = reader.load(list(request.schemas_topic)).orderBy("offset").collect()
    registry = read_schema_registry(
        (row.offset, _bytes_or_none(row.key), _bytes_or_none(row.value)) for row in rows
    )
    if registry.unreadable:
        shown = ", ".join(map(str, registry.unreadable[:10]))
        _logger.warning("%s: no registry's records at offsets %s", SCHEMAS_TOPIC, shown)
    return registry


class _Chooser:
    """Which of the registry's schemas reads which id."""

    def __init__(
        self, request: DecodingRequest, spark: SparkSession, registry: SchemaRegistry
    ) -> None:
        self._request = request
        self._spark = spark
        self._registry = registry

    def chosen(self, ids: list[int]) -> ConfluentFormat:
        """Each id with its use, or the reason why it has none."""
        usable: dict[int, RegisteredSchema] = {}
        refused: dict[int, str] = {}
        for schema_id in ids:
            schema = self._registry.by_id.get(schema_id)
            reason = schema and self._refusal(schema)
            if reason:
                refused[schema_id] = reason
            elif schema:
                usable[schema_id] = schema
        is_chosen = self._request.schema is not None or self._request.schema_id is not None
        if not usable and not is_chosen:
            raise self._none_found(ids, refused)
        reader = self._reader(usable)
        uses = []
        for schema_id, schema in usable.items():
            try:
                uses.append(self._use(schema, reader))
            except SchemaError as error:
                refused[schema_id] = str(error)
        if not uses:
            raise self._none_found(ids, refused)
        return ConfluentFormat(uses, refused)

    def _refusal(self, schema: RegisteredSchema) -> str | None:
        wanted = _REGISTRY_TYPES[self._request.kind]
        if schema.schema_type != wanted:
            return f"its schema is {schema.schema_type}, not {wanted}"
        return "its schema is encrypted in _schemas" if schema.is_encrypted else None

    def _reader(self, usable: Mapping[int, RegisteredSchema]) -> SchemaFormat:
        request, name = self._request, self._request.argument("schema-id")
        if request.schema:
            return given_format(request, self._spark)
        schema_id = _newest(usable) if request.schema_id is None else request.schema_id
        schema = self._registry.by_id.get(schema_id)
        if schema is None:
            known = ", ".join(map(str, sorted(self._registry.by_id)))
            raise OptionError(name, schema_id, f"an id in _schemas: {known or 'there is none'}")
        reason = self._refusal(schema)
        if reason:
            raise OptionError(name, schema_id, f"a schema that can be used, but {reason}")
        try:
            return self._reader_format(schema)
        except SchemaError as error:
            allowed = f"a schema that can be used, but {error}"
            raise OptionError(name, schema_id, allowed) from error

    def _reader_format(self, schema: RegisteredSchema) -> SchemaFormat:
        if self._request.kind is PayloadKind.CONFLUENT_JSON:
            references = self._registry.references(schema)
            texts = {name: used.text for name, used in references.items()}
            return JsonFormat(json.dumps(json_schema_type(schema.text, texts)))
        text = self._avro_text(schema)
        _check_avro(self._request, self._spark, text)
        return AvroFormat(text, text)

    def _use(self, schema: RegisteredSchema, reader: SchemaFormat) -> SchemaUse:
        match reader:
            case AvroFormat(_, reader_text):
                writer = self._avro_text(schema)
                is_raw = _is_bytes(writer)
                if is_raw != _is_bytes(reader_text):
                    raise SchemaError("only one of its schema and the reader's is bytes")
                return SchemaUse(schema.schema_id, AvroFormat(writer, reader_text, is_raw))
            case ProtobufFormat(message):
                place = write_message_indexes(message_place(schema.text, message))
                return SchemaUse(schema.schema_id, reader, place)
            case _:
                return SchemaUse(schema.schema_id, reader)

    def _avro_text(self, schema: RegisteredSchema) -> str:
        references = self._registry.references(schema)
        texts = [used.text for used in references.values()]
        return standalone_avro_schema(schema.text, texts) if texts else schema.text

    def _none_found(self, ids: list[int], refused: Mapping[int, str]) -> OptionError:
        reasons = [
            f"{schema_id} ({refused.get(schema_id, 'not in _schemas')})" for schema_id in ids
        ]
        return OptionError(
            self._request.argument("format"),
            self._request.kind.value,
            f"what the data is; no payload has the id of a usable schema, found: "
            f"{', '.join(reasons) or 'none'}",
        )


def _newest(schemas: Mapping[int, RegisteredSchema]) -> int:
    """The highest id, of those that nobody has deleted if there are any."""
    is_registered = {n: schemas[n].state is SchemaState.REGISTERED for n in schemas}
    return max(schemas, key=lambda schema_id: (is_registered[schema_id], schema_id))


def _is_bytes(schema: str) -> bool:
    parsed = read_avro_schema(schema)
    return (parsed.get("type") if isinstance(parsed, dict) else parsed) == "bytes"


def _type_json(request: DecodingRequest, text: str) -> str:
    name = request.argument("schema")
    try:
        if not text.lstrip().startswith("{"):
            return DataType.fromDDL(text).json()
        parsed = json.loads(text)
        is_sparks = parsed.get("type") == "struct" and "fields" in parsed
        return text if is_sparks else json.dumps(json_schema_type(text, {}))
    except (ValueError, SchemaError) as error:
        raise OptionError(name, request.schema, f"a schema, but {error}") from error
    except PySparkException as error:
        allowed = (
            f"a file, a Spark DDL such as 'id BIGINT, name STRING', or a JSON Schema ({error})"
        )
        raise OptionError(name, request.schema, allowed) from error


def _check_avro(request: DecodingRequest, spark: SparkSession, schema: str) -> None:
    _check(request, spark, F.call_function("from_avro", F.lit(b""), F.lit(schema)))


def _check(request: DecodingRequest, spark: SparkSession, decoded: Column) -> None:
    """Raise OptionError if Spark refuses to decode like this."""
    try:
        _ = spark.range(0).select(decoded).schema
    except AnalysisException as error:
        condition = error.getCondition() or ""
        if condition.endswith("_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE"):
            package = "spark-protobuf" if request.kind.is_protobuf else "spark-avro"
            kind = request.kind.value
            raise OptionError(
                request.argument("format"), kind, _how_to_add(package, spark.version)
            ) from error
        raise OptionError(request.argument("schema"), _named(request), str(error)) from error
    except Py4JJavaError as error:
        # Not all that spark-avro throws at a schema has a Python error of its own.
        message = str(error.java_exception.getMessage()).strip()
        raise OptionError(request.argument("schema"), _named(request), message) from error


def _named(request: DecodingRequest) -> object:
    return request.schema or f"schema id {request.schema_id}"


def _how_to_add(package: str, version: str) -> str:
    artifact = f"org.apache.spark:{package}_2.13:{version}"
    return (
        f"needs the jar of {package}, which is not on the class path: start with --packages "
        f"{artifact} (with Delta's package, which this replaces), or --jars with that jar; for "
        f"`python jobs/...`: PYSPARK_SUBMIT_ARGS='--packages {artifact} pyspark-shell'"
    )


def _bytes_or_none(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
