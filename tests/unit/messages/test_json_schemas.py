"""JSON Schema as Spark's types. Rule: F292."""

import json
from typing import Any

import pytest

from kafkalog.errors import SchemaError
from kafkalog.messages.json_schemas import json_schema_type


def spark_type(schema: Any, **references: Any) -> Any:
    texts = {name: json.dumps(reference) for name, reference in references.items()}
    return json_schema_type(json.dumps(schema), texts)


def struct(**fields: Any) -> Any:
    listed = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in fields.items()
    ]
    return {"type": "struct", "fields": listed}


def array(element: Any) -> Any:
    return {"type": "array", "elementType": element, "containsNull": True}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "long"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "boolean"),
        ({"type": ["null", "integer"]}, "long"),
        ({"type": "array", "items": {"type": "number"}}, array("double")),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, struct(a="long")),
        # As Confluent's serializer makes it of an optional field.
        ({"oneOf": [{"type": "null", "title": "Not included"}, {"type": "string"}]}, "string"),
        ({"anyOf": [{"type": "integer"}]}, "long"),
    ],
)
def test_types(schema: Any, expected: Any) -> None:
    assert spark_type(schema) == expected


def test_objects_of_any_names_are_maps() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    expected = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    assert spark_type(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        {"enum": ["a", 1]},
        {"type": ["string", "integer"]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object"},
        {"type": "array"},
    ],
)
def test_what_has_no_type_of_its_own_stays_text(schema: Any) -> None:
    assert spark_type(schema) == "string"


def test_references_lead_within_the_schema_and_to_others() -> None:
    schema = {
        "type": "object",
        "properties": {
            "money": {"$ref": "#/$defs/a~1b"},
            "line": {"$ref": "line.json"},
            "unit": {"$ref": "line.json#/definitions/unit"},
        },
        "$defs": {"a/b": {"type": "integer"}},
    }
    line = {
        "type": "object",
        "properties": {"unit": {"$ref": "#/definitions/unit"}},
        "definitions": {"unit": {"type": "boolean"}},
    }
    found = spark_type(schema, **{"line.json": line})
    assert found == struct(money="long", line=struct(unit="boolean"), unit="boolean")


def test_a_type_within_itself_is_text_there() -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert spark_type(schema) == struct(next="string", n="long")


@pytest.mark.parametrize(
    "schema",
    [
        "text",
        [],
        {"$ref": "#/definitions/x"},
        {"$ref": "other.json"},
        {"$ref": 5},
        {"oneOf": [5]},
        {"type": "object", "properties": 5},
    ],
)
def test_what_is_not_a_schema_is_an_error(schema: Any) -> None:
    with pytest.raises(SchemaError):
        spark_type(schema)


def test_what_is_not_json_is_an_error() -> None:
    with pytest.raises(SchemaError, match="not a JSON Schema"):
        json_schema_type("a BIGINT", {})
