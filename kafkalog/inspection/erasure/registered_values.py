"""Keys and values in the formats of Confluent's serializers, by the schemas of a registry.

Rule: docs/erasure.md F1262.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from kafkalog.errors import CorruptDataError, SchemaError
from kafkalog.messages.avro_schemas import standalone_avro_schema
from kafkalog.messages.avro_values import AvroValues
from kafkalog.messages.confluent_wire import read_schema_prefix
from kafkalog.messages.protobuf_values import ProtobufValues
from kafkalog.messages.schema_registry import AVRO, JSON, RegisteredSchema, SchemaRegistry

_Decoder = Callable[[bytes], Any]


class RegisteredValues:
    """Decodes payloads that begin with the id of a schema of a registry, deleted ones too."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._of_id = cache(self._decoder)

    def __call__(self, data: bytes) -> Any:
        """Return a payload's value. Raises ValueError for one that cannot be decoded."""
        try:
            prefix = read_schema_prefix(data)
            if prefix.schema_id is None:
                raise ValueError("a schema's GUID, which registries do not list")
            return self._of_id(prefix.schema_id)(data)
        except (CorruptDataError, SchemaError) as error:
            raise ValueError(str(error)) from error

    def _decoder(self, schema_id: int) -> _Decoder:
        schema = self._registry.by_id.get(schema_id)
        if schema is None or schema.is_encrypted:
            raise ValueError(f"schema {schema_id} is not in the registry")
        references = [each.text for each in self._registry.references(schema).values()]
        if schema.schema_type == AVRO:
            return _Avro(schema, references)
        if schema.schema_type == JSON:
            return lambda data: json.loads(data[read_schema_prefix(data).size :])
        messages = ProtobufValues(schema.text, references)
        return lambda data: _message(messages, data)


class _Avro:
    def __init__(self, schema: RegisteredSchema, references: list[str]) -> None:
        text = schema.text
        self._text = standalone_avro_schema(text, references) if references else text

    @cached_property
    def _values(self) -> AvroValues:
        return AvroValues(self._text)

    def __call__(self, data: bytes) -> Any:
        position = read_schema_prefix(data).size
        # Bytes alone are written without their length (F291).
        if self._text.replace(" ", "") in ('"bytes"', '{"type":"bytes"}'):
            return data[position:]
        return self._values.decoded(data, position)


def _message(messages: ProtobufValues, data: bytes) -> Any:
    prefix = read_schema_prefix(data, with_message_indexes=True)
    return messages.decoded(data, prefix.size, prefix.message_indexes or (0,))
