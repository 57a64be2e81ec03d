"""Which of the registry's schemas decodes which payloads. Rules: docs/format.md F287 to F293."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from kafkalog.errors import OptionError, RefusedOptionError, SchemaError
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.lake.decoded_columns import Differences, merged_type
from kafkalog.lake.decoding.decoding_requests import DecodingRequest, PayloadKind
from kafkalog.log_lines import logger
from kafkalog.messages.avro_schemas import (
    merged_avro_schema,
    read_avro_schema,
    standalone_avro_schema,
)
from kafkalog.messages.confluent_wire import write_message_indexes
from kafkalog.messages.decoding.registry_sources import registry_at
from kafkalog.messages.json_schemas import json_schema_type
from kafkalog.messages.payload_formats import (
    AvroFormat,
    ConfluentFormat,
    JsonFormat,
    ProtobufFormat,
    SchemaFormat,
    SchemaUse,
)
from kafkalog.messages.proto_files import message_place
from kafkalog.messages.schema_registry import (
    SCHEMAS_TOPIC,
    RegisteredSchema,
    SchemaRegistry,
    SchemaState,
    read_schema_registry,
)
from kafkalog.views.options.option_values import chosen
from kafkalog.views.options.options import Mode, ReadOptions
from kafkalog.views.options.topics import TopicChoice
from kafkalog.views.planning.planning import chosen_logs, planned_groups
from kafkalog.views.view_reading import read_view

_logger = logger(__name__)
_Read = TypeVar("_Read")
_REGISTRY_TYPES = {
    PayloadKind.CONFLUENT_AVRO: "AVRO",
    PayloadKind.CONFLUENT_JSON: "JSON",
    PayloadKind.CONFLUENT_PROTOBUF: "PROTOBUF",
}


# Offset, key and value of a record of `_schemas`.
Record = tuple[int, bytes | None, bytes | None]


def read_registry(
    request: DecodingRequest, records: Callable[[DecodingRequest], Iterable[Record]]
) -> SchemaRegistry:
    """Return the schemas in the segments of `_schemas`, whose `records` are in the order of
    offsets, or those of the registry that is given. Raises OptionError for one that cannot be
    read."""
    if request.registry is not None:
        try:
            return registry_at(request.registry)
        except SchemaError as error:
            raise RefusedOptionError("--schema-registry", str(error)) from error
    registry = read_schema_registry(records(request))
    if registry.unreadable:
        shown = ", ".join(map(str, registry.unreadable[:10]))
        _logger.warning("%s: no registry's records at offsets %s", SCHEMAS_TOPIC, shown)
    return registry


def records_of_schemas(request: DecodingRequest) -> list[Record]:
    """Return the records of `_schemas` under the paths of a request, read in this process."""
    mode = chosen("mode", Mode, request.mode)
    options = ReadOptions(
        tuple(request.schemas_topic),
        topics=TopicChoice((SCHEMAS_TOPIC,)),
        mode=mode,
        fails_on_deleted=mode is Mode.FAILFAST,
    )
    logs = find_logs(options.paths, strict=options.mode is Mode.FAILFAST)
    columns = "offset", "key", "value"
    return sorted(
        (row["offset"], row["key"], row["value"])
        for group in planned_groups(options, chosen_logs(options, logs))
        for batch in read_view(group, options, columns)
        for row in batch.to_pylist()
    )


class RegistryChoice:
    """Chooses by the schema ids that are in the data. `given` is the schema to read all as, if the
    arguments have one."""

    def __init__(
        self,
        request: DecodingRequest,
        registry: SchemaRegistry,
        check_avro: Callable[[str], None],
        given: SchemaFormat | None,
    ) -> None:
        """`check_avro` raises SchemaError for a text that cannot be read as an Avro schema."""
        self._request = request
        self._registry = registry
        self._check_avro = check_avro
        self._given = given

    def chosen(self, ids: list[int]) -> ConfluentFormat:
        """Return each id with its use, or the reason why it has none.

        Raises OptionError if no id has a use, or the schema to read all as cannot be used.
        """
        usable: dict[int, RegisteredSchema] = {}
        refused: dict[int, str] = {}
        for schema_id in ids:
            schema = self._registry.by_id.get(schema_id)
            reason = schema and self._refusal(schema)
            if reason:
                refused[schema_id] = reason
            elif schema:
                usable[schema_id] = schema
        if not usable and self._request.schema_id is None:
            raise self._none_found(ids, refused)
        reader, read_as = self._given, None
        if reader is None:
            pinned = self._request.schema_id
            read_as = _newest(usable) if pinned is None else pinned
            reader = self._reader(usable, read_as)
        uses = []
        for schema_id, schema in usable.items():
            try:
                uses.append(self._use(schema, reader))
            except SchemaError as error:
                refused[schema_id] = str(error)
        if not uses:
            raise self._none_found(ids, refused)
        return ConfluentFormat(uses, refused, read_as)

    def known(self) -> set[int]:
        """Return all ids of the registry."""
        return set(self._registry.by_id)

    def with_versions(self, ids: Iterable[int]) -> set[int]:
        """Return ids, and those of the other versions of their subjects."""
        of = {found: self._registry.by_id[found] for found in ids if found in self._registry.by_id}
        subjects = {schema.subject for schema in of.values()}
        schemas = self._registry.by_id.values()
        return {*ids, *(each.schema_id for each in schemas if each.subject in subjects)}

    def _refusal(self, schema: RegisteredSchema) -> str | None:
        wanted = _REGISTRY_TYPES[self._request.kind]
        if schema.schema_type != wanted:
            return f"its schema is {schema.schema_type}, not {wanted}"
        return "its schema is encrypted in _schemas" if schema.is_encrypted else None

    def _reader(self, usable: Mapping[int, RegisteredSchema], schema_id: int) -> SchemaFormat:
        request, name = self._request, self._request.argument("schema-id")
        schema = self._registry.by_id.get(schema_id)
        if schema is None:
            known = ", ".join(map(str, sorted(self._registry.by_id)))
            raise OptionError(name, schema_id, f"an id in _schemas: {known or 'there is none'}")
        reason = self._refusal(schema)
        if reason:
            raise OptionError(name, schema_id, f"a schema that can be used, but {reason}")
        others = [usable[each] for each in sorted(usable, reverse=True) if each != schema_id]
        try:
            return self._reader_format(schema, [] if request.is_pinned else others)
        except SchemaError as error:
            allowed = f"a schema that can be used, but {error}"
            raise OptionError(name, schema_id, allowed) from error

    def _reader_format(
        self, schema: RegisteredSchema, others: Sequence[RegisteredSchema]
    ) -> SchemaFormat:
        """Return a schema as the format to read all as, with the fields that only the others in the
        data have: records of an older schema keep what a newer one has dropped."""
        if self._request.kind is PayloadKind.CONFLUENT_JSON:
            found = self._json_type(schema)
            # Avro's records have names; here the subject says what is the same.
            versions = [other for other in others if other.subject == schema.subject]
            for other in self._readable(versions, self._json_type):
                found = merged_type(found, other, "", Differences())
            return JsonFormat(json.dumps(found))
        text = self._avro_text(schema)
        self._check_avro(text)
        merged = merged_avro_schema(text, self._readable(others, self._avro_text))
        self._check_avro(merged)
        return AvroFormat(merged, merged)

    def _readable(
        self, schemas: Sequence[RegisteredSchema], read: Callable[[RegisteredSchema], _Read]
    ) -> list[_Read]:
        """Return what `read` gives of the schemas; without those that `_use` refuses."""
        found = []
        for schema in schemas:
            with suppress(SchemaError):
                found.append(read(schema))
        return found

    def _json_type(self, schema: RegisteredSchema) -> Any:
        references = self._registry.references(schema)
        return json_schema_type(schema.text, {name: each.text for name, each in references.items()})

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
    """Return the highest id that is not deleted, or the highest if all are."""
    is_registered = {n: schemas[n].state is SchemaState.REGISTERED for n in schemas}
    return max(schemas, key=lambda schema_id: (is_registered[schema_id], schema_id))


def _is_bytes(schema: str) -> bool:
    parsed = read_avro_schema(schema)
    return (parsed.get("type") if isinstance(parsed, dict) else parsed) == "bytes"
