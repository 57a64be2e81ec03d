"""Avro schemas that use types of other schemas, or have their fields, as one text.

Rules: docs/format.md F290; docs/ingest.md F936.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kafkalog.errors import SchemaError

_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_NAMED = {"record", "error", "enum", "fixed"}


def read_avro_schema(text: str) -> Any:
    """Return the schema's JSON. Raises SchemaError if the text is not a schema."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"not an Avro schema: {error}: {text[:80]}") from error


def standalone_avro_schema(text: str, references: Sequence[str]) -> str:
    """Return the schema with the types from `references` inserted where it first uses them.

    Each reference comes after those that it uses itself. Raises SchemaError if no reference defines
    a name, or if a text is not a schema or nested too deeply.
    """
    definitions: dict[str, Any] = {}
    try:
        for reference in references:
            for name, definition in _definitions(read_avro_schema(reference), ""):
                definitions.setdefault(name, definition)
        return json.dumps(_Expansion(definitions).expanded(read_avro_schema(text), ""))
    except (AttributeError, TypeError, RecursionError) as error:
        raise SchemaError(f"not an Avro schema: {error}: {text[:80]}") from error


def merged_avro_schema(text: str, others: Iterable[str]) -> str:
    """Return a schema whose records also have the fields that only the others give records of the
    same name: null by default. A field that several have is that of the first.

    Raises SchemaError if a text is not a schema or nested too deeply.
    """
    definitions: dict[str, Any] = {}
    has_more = False
    schema = read_avro_schema(text)
    try:
        for each in (schema, *map(read_avro_schema, others)):
            for name, definition in _definitions(each, ""):
                known = definitions.setdefault(name, definition)
                added = _fields_beyond(definition, known)
                if added:
                    definitions[name] = _with_fields(known, added)
                    has_more = True
        if not has_more:
            return text
        return json.dumps(_Expansion(definitions, replaces=True).expanded(schema, ""))
    except (AttributeError, TypeError, KeyError, RecursionError) as error:
        raise SchemaError(f"not an Avro schema: {error}: {text[:80]}") from error


def _fields_beyond(definition: dict[str, Any], known: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields that a definition has and another lacks, by any of its fields' names. Names
    that differ in capital letters only are the same to Spark."""
    names = {
        name.lower()
        for field in known.get("fields", ())
        for name in (field["name"], *field.get("aliases", ()))
    }
    return [each for each in definition.get("fields", ()) if each["name"].lower() not in names]


def _with_fields(definition: dict[str, Any], added: Iterable[dict[str, Any]]) -> dict[str, Any]:
    fields = [
        {"name": each["name"], "type": _nullable(each["type"]), "default": None} for each in added
    ]
    return {**definition, "fields": [*definition.get("fields", ()), *fields]}


def _nullable(schema: Any) -> list[Any]:
    branches = schema if isinstance(schema, list) else [schema]
    return ["null", *(each for each in branches if each != "null")]


class _Expansion:
    """One walk through a schema; what it has defined by now is only named from then on. With
    `replaces` the definitions count in place of those in the schema."""

    def __init__(self, definitions: dict[str, Any], *, replaces: bool = False) -> None:
        self._definitions = definitions
        self._replaces = replaces
        self._defined: set[str] = set()

    def expanded(self, schema: Any, namespace: str) -> Any:
        if isinstance(schema, list):
            return [self.expanded(branch, namespace) for branch in schema]
        if isinstance(schema, str):
            return self._named_type(schema, namespace)
        if not isinstance(schema, dict):
            raise SchemaError(f"not an Avro schema: {str(schema)[:80]}")
        kind = schema.get("type")
        if isinstance(kind, str) and kind in _NAMED:
            name = _full_name(schema, namespace)
            if name in self._defined:
                return name
            whole = self._definitions.get(name, schema) if self._replaces else schema
            return self._definition(whole, name)
        changed = {
            name: self.expanded(schema[name], namespace)
            for name in ("items", "values")
            if name in schema
        }
        if kind not in ("array", "map"):
            changed["type"] = self.expanded(kind, namespace)
        return {**schema, **changed}

    def _definition(self, schema: dict[str, Any], name: str) -> dict[str, Any]:
        self._defined.add(name)
        space = name.rpartition(".")[0]
        result = {**schema, "name": name.rpartition(".")[2], "namespace": space}
        if "fields" in schema:
            result["fields"] = [
                {**field, "type": self.expanded(field.get("type"), space)}
                for field in schema["fields"]
            ]
        return result

    def _named_type(self, name: str, namespace: str) -> Any:
        if name in _PRIMITIVES:
            return name
        in_namespace = f"{namespace}.{name}" if namespace and "." not in name else name
        for full_name in (in_namespace, name):
            if full_name in self._defined:
                return full_name
            if full_name in self._definitions:
                return self._definition(self._definitions[full_name], full_name)
        raise SchemaError(f"the Avro schema uses type {in_namespace}, which is defined nowhere")


def _full_name(schema: dict[str, Any], namespace: str) -> str:
    name = schema.get("name")
    if not isinstance(name, str):
        raise SchemaError(f"an Avro type without a name: {str(schema)[:80]}")
    if "." in name:
        return name
    space = schema.get("namespace", namespace)
    return f"{space}.{name}" if space else name


def _definitions(schema: Any, namespace: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all named types in a schema by their full names, which they have for a name as well."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _definitions(branch, namespace)
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _NAMED:
        name = _full_name(schema, namespace)
        namespace = name.rpartition(".")[0]
        yield name, {**schema, "name": name.rpartition(".")[2], "namespace": namespace}
    for inner in (kind, schema.get("items"), schema.get("values")):
        yield from _definitions(inner, namespace)
    for field in schema.get("fields", ()):
        yield from _definitions(field.get("type"), namespace)
