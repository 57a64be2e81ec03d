"""Keys and values in the formats of Confluent's serializers, by the schemas of a registry.

Rule: docs/erasure.md F1262.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Any

from kafkalog.columns.batches.segment_batches import SegmentBatches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.record_columns import RecordColumns
from kafkalog.errors import (
    CorruptDataError,
    RefusedOptionError,
    SchemaError,
    UnsupportedFormatError,
)
from kafkalog.inspection.erasure.input_files import InputEntry, Part
from kafkalog.inspection.erasure.record_matching import Texts
from kafkalog.messages.avro_schemas import standalone_avro_schema
from kafkalog.messages.confluent_wire import read_schema_prefix
from kafkalog.messages.decoding.avro_values import AvroValues
from kafkalog.messages.decoding.protobuf_values import ProtobufValues
from kafkalog.messages.decoding.registry_sources import registry_at
from kafkalog.messages.schema_registry import (
    AVRO,
    JSON,
    SCHEMAS_TOPIC,
    RegisteredSchema,
    SchemaRegistry,
    read_schema_registry,
)
from kafkalog.storage.files.files import InputFile

_COLUMNS = ("offset", "key", "value")
_Decoder = Callable[[bytes], Any]


class RegisteredValues:
    """Decodes payloads that begin with the id of a schema of a registry, deleted ones too."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._of_id = cache(self._decoder)

    def __reduce__(self) -> tuple[type[RegisteredValues], tuple[SchemaRegistry]]:
        # A task gets the schemas, and makes its own decoders.
        return RegisteredValues, (self._registry,)

    def __call__(self, data: bytes) -> Any:
        """Return a payload's value. Raises ValueError for one that cannot be decoded."""
        try:
            prefix = read_schema_prefix(data)
            if prefix.schema_id is None:
                raise ValueError("a schema's GUID, which registries do not list")
            return self._of_id(prefix.schema_id)(data)
        except (CorruptDataError, SchemaError) as error:
            raise ValueError(str(error)) from error

    def texts_in(self, schema_id: int, texts: Collection[str]) -> Texts | None:
        """Return how payloads of a schema have these texts: the symbols of Avro's enumerations are
        numbers. None where no payload of it is decoded."""
        try:
            self._of_id(schema_id)
        except (CorruptDataError, SchemaError, ValueError):
            return None
        schema = self._registry.by_id[schema_id]
        if schema.schema_type == JSON:
            return Texts.IN_JSON
        used = self._registry.references(schema).values()
        written = [schema.text, *(each.text for each in used)]
        return Texts.HIDDEN if any(_has_symbol(each, texts) for each in written) else Texts.PLAIN

    def hides(self, texts: Collection[str]) -> bool:
        """Return whether a schema has one of these texts as a symbol."""
        return any(self.texts_in(each, texts) is Texts.HIDDEN for each in self._registry.by_id)

    def _decoder(self, schema_id: int) -> _Decoder:
        schema = self._registry.by_id.get(schema_id)
        if schema is None or schema.is_encrypted:
            raise ValueError(f"schema {schema_id} is not in the registry")
        references = [each.text for each in self._registry.references(schema).values()]
        if schema.schema_type == AVRO:
            return _Avro(schema, references)
        if schema.schema_type == JSON:
            # Serializers write UTF-8; Python would read others too.
            return lambda data: json.loads(data[read_schema_prefix(data).size :].decode())
        messages = ProtobufValues(schema.text, references)
        return lambda data: _message(messages, data)


def _has_symbol(schema: str, texts: Collection[str]) -> bool:
    """Return whether an Avro schema can have one of the texts as a symbol. Names with escapes are
    not looked for."""
    if "\\u" in schema:
        return True
    return '"enum"' in schema and any(f'"{text}"' in schema for text in texts)


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


def decoders_for(place: str | None, entries: Iterable[InputEntry]) -> tuple[RegisteredValues, ...]:
    """Return what decodes by the registry that `--schema-registry` names, else by that of
    `_schemas` among the files of inputs; nothing without one. Raises RefusedOptionError."""
    if place is not None:
        return (registered_values(place),)
    registry = registry_in(entries)
    return () if registry is None else (RegisteredValues(registry),)


def registered_values(place: str) -> RegisteredValues:
    """Return what decodes by the registry that `--schema-registry` names, a URL or a directory.
    Raises RefusedOptionError for one that cannot be read."""
    try:
        return RegisteredValues(registry_at(place))
    except SchemaError as error:
        raise RefusedOptionError("--schema-registry", str(error)) from error


def registry_in(entries: Iterable[InputEntry]) -> SchemaRegistry | None:
    """Return the registry whose topic `_schemas` is among the files of inputs, of the replica that
    goes on furthest; None without one, or where nothing in it can be read."""
    by_directory: defaultdict[str, list[InputEntry]] = defaultdict(list)
    for entry in entries:
        is_live = not (entry.directory_mark or entry.file_mark or entry.is_tiered)
        if entry.part is Part.LOG and entry.topic == SCHEMAS_TOPIC and is_live:
            by_directory[os.path.dirname(entry.path)].append(entry)
    replicas = [[*_records(logs)] for _, logs in sorted(by_directory.items())]
    best = max(replicas, key=lambda records: records[-1][0] if records else -1, default=[])
    return read_schema_registry(best) if best else None


def _records(logs: Sequence[InputEntry]) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    for entry in sorted(logs, key=lambda each: each.base_offset or 0):
        options = SegmentOptions(entry.base_offset, entry.next_base_offset)
        columns = RecordColumns(options, _COLUMNS, {})
        with suppress(UnsupportedFormatError, CorruptDataError), InputFile(entry.path) as file:
            for chunk in SegmentBatches(FileWindow(file), options).chunks():
                for batch in columns.batches(chunk):
                    lists = (batch.column(name).to_pylist() for name in _COLUMNS)
                    yield from zip(*lists, strict=True)
