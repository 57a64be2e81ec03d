"""JSON Schema as a Spark type, in Spark's JSON form. Rule: docs/format.md F292.

A schema without a Spark type (a choice of several, no type at all) becomes text: the JSON
unchanged, so that nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from kafkalog.errors import SchemaError

_TEXT = "string"
_SIMPLE = {"string": "string", "integer": "long", "number": "double", "boolean": "boolean"}


def read_json_schema(text: str) -> Any:
    """Return a JSON Schema's JSON. Raises SchemaError if the text is not a schema."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"not a JSON Schema: {error}: {text[:80]}") from error
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"not a JSON Schema: {text[:80]}")
    return schema


def json_schema_type(text: str, references: Mapping[str, str]) -> Any:
    """Return the type of the values that a JSON Schema allows; `references` are other schemas by
    name.

    Raises SchemaError for a reference that leads nowhere.
    """
    documents = {name: read_json_schema(reference) for name, reference in references.items()}
    try:
        return _Walk({**documents, "": read_json_schema(text)}).type_of("", "", ())
    except (AttributeError, TypeError, RecursionError) as error:
        raise SchemaError(f"not a JSON Schema: {error}: {text[:80]}") from error


class _Walk:
    """Follows references between documents; `path` are those on the way, for the type within
    itself has no end."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = documents

    def type_of(self, document: str, pointer: str, path: tuple[tuple[str, str], ...]) -> Any:
        if (document, pointer) in path:
            return _TEXT
        schema = self._documents[document]
        for part in pointer.split("/")[1:]:
            schema = self._member(schema, unquote(part).replace("~1", "/").replace("~0", "~"))
        return self._type(schema, document, (*path, (document, pointer)))

    def _member(self, schema: Any, name: str) -> Any:
        if isinstance(schema, list) and name.isdigit() and int(name) < len(schema):
            return schema[int(name)]
        if isinstance(schema, dict) and name in schema:
            return schema[name]
        raise SchemaError(f"the JSON Schema refers to {name!r}, which is not in it")

    def _type(self, schema: Any, document: str, path: tuple[tuple[str, str], ...]) -> Any:
        if not isinstance(schema, dict):
            return _TEXT
        if "$ref" in schema:
            return self._referred(schema["$ref"], document, path)
        for choice in ("oneOf", "anyOf", "allOf"):
            if choice in schema:
                branches = [one for one in schema[choice] if one.get("type") != "null"]
                is_one = len(branches) == 1
                return self._type(branches[0], document, path) if is_one else _TEXT
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds or []
        kinds = [kind for kind in kinds if kind != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
        if kind == "object":
            return self._object_type(schema, document, path)
        if kind == "array" and isinstance(schema.get("items"), dict):
            element = self._type(schema["items"], document, path)
            return {"type": "array", "elementType": element, "containsNull": True}
        return _SIMPLE.get(kind or "", _TEXT)

    def _object_type(
        self, schema: Mapping[str, Any], document: str, path: tuple[tuple[str, str], ...]
    ) -> Any:
        if schema.get("properties"):
            fields = [
                {
                    "name": name,
                    "type": self._type(inner, document, path),
                    "nullable": True,
                    "metadata": {},
                }
                for name, inner in schema["properties"].items()
            ]
            return {"type": "struct", "fields": fields}
        if isinstance(schema.get("additionalProperties"), dict):
            value = self._type(schema["additionalProperties"], document, path)
            return {
                "type": "map",
                "keyType": "string",
                "valueType": value,
                "valueContainsNull": True,
            }
        return _TEXT

    def _referred(self, reference: str, document: str, path: tuple[tuple[str, str], ...]) -> Any:
        name, _, pointer = reference.partition("#")
        name = name or document
        if name not in self._documents:
            raise SchemaError(
                f"the JSON Schema refers to {name!r}, which is not among its references"
            )
        return self.type_of(name, pointer, path)
