"""The schemas in the topic `_schemas`, by id. Rules: docs/format.md F287 to F291."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from kafkalog.errors import SchemaError

SCHEMAS_TOPIC = "_schemas"
AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
_OTHER_CONTEXT = ":."
_ENCRYPTED = "__enc__"


class SchemaState(Enum):
    """The state of a schema in the registry. In each state the id leads to the schema."""

    REGISTERED = "registered"
    DELETED = "deleted"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema that another one uses, under the name by which it does."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """One version of a subject. `schema_type` is AVRO, JSON or PROTOBUF."""

    subject: str
    version: int
    schema_id: int
    schema_type: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    is_encrypted: bool = False
    state: SchemaState = SchemaState.REGISTERED


_Version = tuple[str, int]


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """The registry's state: schemas by id (default context) and by subject and version.

    `unreadable` has the offsets of records that the registry did not write.
    """

    by_id: Mapping[int, RegisteredSchema]
    by_version: Mapping[_Version, RegisteredSchema]
    unreadable: tuple[int, ...] = ()

    def references(self, schema: RegisteredSchema) -> dict[str, RegisteredSchema]:
        """Return all schemas that this one uses, by name, each after those that it uses itself.

        Raises SchemaError if one is not in the topic.
        """
        found: dict[str, RegisteredSchema] = {}
        try:
            self._collect(schema, found, (schema.subject,))
        except RecursionError:
            raise SchemaError(f"{schema.subject} uses schemas that use others too deeply") from None
        return found

    def _collect(
        self, schema: RegisteredSchema, found: dict[str, RegisteredSchema], path: tuple[str, ...]
    ) -> None:
        for reference in schema.references:
            used = self.by_version.get((reference.subject, reference.version))
            place = f"version {reference.version} of subject {reference.subject}"
            if used is None:
                raise SchemaError(f"{' → '.join(path)} uses {place}, which is not in the topic")
            if reference.name in path:
                raise SchemaError(f"{' → '.join(path)} uses {place}, which uses itself")
            if reference.name not in found:
                self._collect(used, found, (*path, reference.name))
                found[reference.name] = used


@dataclass(slots=True)
class _Replay:
    by_version: dict[_Version, RegisteredSchema] = field(default_factory=dict)
    holder: dict[int, _Version] = field(default_factory=dict)

    def put(self, schema: RegisteredSchema) -> None:
        if is_default_context(schema.subject):
            held = self.by_version.get(self.holder.get(schema.schema_id, ("", 0)))
            is_held = held is not None and held.state is not SchemaState.REMOVED
            if is_held and held is not None and held.text != schema.text:
                return
            self.holder[schema.schema_id] = (schema.subject, schema.version)
        self.by_version[schema.subject, schema.version] = schema

    def change(self, version: _Version, state: SchemaState) -> None:
        if version in self.by_version:
            self.by_version[version] = replace(self.by_version[version], state=state)

    def change_subject(self, subject: str, last: int, state: SchemaState) -> None:
        # Not by counting up to `last`, which any record may set to any number.
        for version, schema in list(self.by_version.items()):
            is_meant = version[0] == subject and version[1] <= last
            if is_meant and schema.state is not SchemaState.REMOVED:
                self.change(version, state)

    def clear(self, subject: str) -> None:
        for version, schema in list(self.by_version.items()):
            if version[0] == subject and schema.state is SchemaState.DELETED:
                self.change(version, SchemaState.REMOVED)


def is_default_context(subject: str) -> bool:
    """Return whether a subject's ids are those of the default context."""
    return not subject.startswith(_OTHER_CONTEXT)


def read_schema_registry(
    records: Iterable[tuple[int, bytes | None, bytes | None]],
) -> SchemaRegistry:
    """Return the state after the records (offset, key, value) of `_schemas`, given in their
    order."""
    replay = _Replay()
    unreadable = []
    for offset, key, value in records:
        try:
            _apply(replay, key, value)
        except (ValueError, KeyError, TypeError, RecursionError):
            unreadable.append(offset)
    held = {schema_id: replay.by_version[version] for schema_id, version in replay.holder.items()}
    by_id = {number: schema for number, schema in held.items() if schema.schema_id == number}
    return SchemaRegistry(by_id, replay.by_version, tuple(unreadable))


def _apply(replay: _Replay, key: bytes | None, value: bytes | None) -> None:
    named = _object(key)
    fields = None if value is None else _object(value)
    match named["keytype"]:
        case "SCHEMA" if fields is None:
            version = _text(named, "subject"), _number(named, "version")
            replay.change(version, SchemaState.REMOVED)
        case "SCHEMA":
            replay.put(_schema(fields))
        case "DELETE_SUBJECT" if fields is not None:
            subject, last = _text(fields, "subject"), _number(fields, "version")
            replay.change_subject(subject, last, SchemaState.DELETED)
        case "CLEAR_SUBJECT" if fields is not None:
            replay.clear(_text(fields, "subject"))
        case _:
            pass


def _schema(fields: Mapping[str, Any] | None) -> RegisteredSchema:
    fields = fields or {}
    properties = (fields.get("metadata") or {}).get("properties") or {}
    is_deleted = fields.get("deleted") is True
    return RegisteredSchema(
        subject=_text(fields, "subject"),
        version=_number(fields, "version"),
        schema_id=_number(fields, "id"),
        schema_type=fields.get("schemaType") or AVRO,
        text=_text(fields, "schema"),
        references=tuple(_references(fields.get("references") or [])),
        is_encrypted=_ENCRYPTED in properties,
        state=SchemaState.DELETED if is_deleted else SchemaState.REGISTERED,
    )


def _references(listed: list[Mapping[str, Any]]) -> Iterator[SchemaReference]:
    for given in listed:
        yield SchemaReference(
            _text(given, "name"), _text(given, "subject"), _number(given, "version")
        )


def _object(data: bytes | None) -> dict[str, Any]:
    parsed = json.loads(data or b"")
    if not isinstance(parsed, dict):
        raise ValueError("not a JSON object")
    return parsed


def _text(fields: Mapping[str, Any], name: str) -> str:
    if not isinstance(fields[name], str):
        raise ValueError(f"{name} is not a text")
    return str(fields[name])


def _number(fields: Mapping[str, Any], name: str) -> int:
    if type(fields[name]) is not int:
        raise ValueError(f"{name} is not a number")
    return int(fields[name])
