"""Avro schemas as types of columns, as spark-avro has them, so that a table is the same whether a
job or a command has decoded its rows.

Rules: docs/decoding.md F1270.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkalog.errors import SchemaError
from kafkalog.messages.avro_schemas import read_avro_schema, standalone_avro_schema

NAMED = ("record", "error", "enum", "fixed")
RECORDS = ("record", "error")
_PRIMITIVES = {
    "null": "void",
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "enum": "string",
    "fixed": "binary",
}
_LOGICAL = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
}
_MOST_DIGITS = 38
# Unions that are one wider number.
_WIDER = {frozenset(("int", "long")): "long", frozenset(("float", "double")): "double"}


class AvroSchema:
    """A schema with its named types by their full names."""

    def __init__(self, text: str) -> None:
        """Raises SchemaError if the text is not an Avro schema."""
        # Each name is whole from here on, and is defined where it is first used.
        self.root = read_avro_schema(standalone_avro_schema(text, ()))
        self._named: dict[str, dict[str, Any]] = {}
        try:
            self._collect(self.root)
        except (AttributeError, TypeError, KeyError, RecursionError) as error:
            raise SchemaError(f"not an Avro schema: {error!r}: {text[:80]}") from error

    def _collect(self, schema: Any) -> None:
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch)
        elif isinstance(schema, dict):
            if schema["type"] in NAMED:
                self._named[full_name(schema)] = schema
            for field in schema.get("fields", ()):
                self._collect(field["type"])
            for inner in (schema["type"], schema.get("items"), schema.get("values")):
                if isinstance(inner, dict | list):
                    self._collect(inner)

    def resolved(self, schema: Any) -> Any:
        """Return a union as a list, and any other schema as an object with its type."""
        if isinstance(schema, str):
            return self._named.get(schema, {"type": schema})
        if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
            return self.resolved(schema["type"])
        if isinstance(schema, dict) and schema["type"] in self._named:
            return self._named[schema["type"]]
        return schema

    def spark_type(self) -> Any:
        """Return the type of the values in the JSON form of Spark's types.

        Raises SchemaError for a type within itself, and for one that is not Avro's.
        """
        try:
            return self._type(self.root, ())
        except (AttributeError, TypeError, KeyError, RecursionError) as error:
            raise SchemaError(f"not an Avro schema: {error!r}") from error

    def _type(self, given: Any, outer: tuple[str, ...]) -> Any:
        schema = self.resolved(given)
        if isinstance(schema, list):
            return self._union_type(schema, outer)
        kind = schema["type"]
        if kind in RECORDS:
            name = full_name(schema)
            if name in outer:
                raise SchemaError(f"the Avro type {name} has itself inside, which no column can")
            inside = (*outer, name)
            fields = [
                _field(each["name"], self._type(each["type"], inside)) for each in schema["fields"]
            ]
            return {"type": "struct", "fields": fields}
        if kind == "array":
            element = self._type(schema["items"], outer)
            return {"type": "array", "elementType": element, "containsNull": True}
        if kind == "map":
            inner = self._type(schema["values"], outer)
            of_map = {"type": "map", "keyType": "string", "valueType": inner}
            return {**of_map, "valueContainsNull": True}
        if kind in ("bytes", "fixed") and schema.get("logicalType") == "decimal":
            if not 0 < schema["precision"] <= _MOST_DIGITS:
                raise SchemaError(f"a decimal of {schema['precision']} digits, which no column has")
            return f"decimal({schema['precision']},{schema.get('scale', 0)})"
        if kind not in _PRIMITIVES:
            raise SchemaError(f"Avro has no type {kind!r}")
        return _LOGICAL.get((kind, schema.get("logicalType", "")), _PRIMITIVES[kind])

    def _union_type(self, union: Sequence[Any], outer: tuple[str, ...]) -> Any:
        branches = self.branches(union)
        if not branches:
            return "void"
        if len(branches) == 1:
            return self._type(branches[0], outer)
        wider = self.wider_number(branches)
        if wider is not None:
            return wider
        members = [
            _field(f"member{place}", self._type(branch, outer))
            for place, branch in enumerate(branches)
        ]
        return {"type": "struct", "fields": members}

    def branches(self, union: Sequence[Any]) -> list[Any]:
        """Return the branches of a union but null."""
        return [branch for branch in union if not is_null(self.resolved(branch))]

    def wider_number(self, branches: Sequence[Any]) -> str | None:
        """Return the number that holds all branches, None if no such number does."""
        resolved = [self.resolved(branch) for branch in branches]
        kinds = frozenset("union" if isinstance(each, list) else each["type"] for each in resolved)
        return _WIDER.get(kinds)


def full_name(schema: Mapping[str, Any]) -> str:
    """Return the name of a named type with its namespace."""
    name, space = schema["name"], schema.get("namespace")
    return f"{space}.{name}" if space and "." not in name else str(name)


def is_null(schema: Any) -> bool:
    """Return whether a resolved schema is null."""
    return isinstance(schema, dict) and schema["type"] == "null"


def _field(name: str, spark_type: Any) -> dict[str, Any]:
    return {"name": name, "type": spark_type, "nullable": True, "metadata": {}}
