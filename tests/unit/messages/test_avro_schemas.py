"""Avro schemas with references, made one. Rules: F290, F936; the names are Avro's own rules."""

import json
from typing import Any

import pytest

from kafkalog.errors import SchemaError
from kafkalog.messages.avro_schemas import (
    merged_avro_schema,
    read_avro_schema,
    standalone_avro_schema,
)


def record(name: str, /, namespace: str | None = None, **fields: Any) -> dict[str, Any]:
    space = {} if namespace is None else {"namespace": namespace}
    listed = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, **space, "fields": listed}


def standalone(schema: Any, *references: Any) -> Any:
    return json.loads(standalone_avro_schema(json.dumps(schema), [*map(json.dumps, references)]))


def test_a_type_is_written_where_it_is_used_first() -> None:
    money = record("Money", "shop", cents="long")
    order = record("Order", "shop", total="Money", paid={"type": "array", "items": "shop.Money"})
    assert standalone(order, money) == record(
        "Order", "shop", total=money, paid={"type": "array", "items": "shop.Money"}
    )


def test_a_type_of_another_namespace_keeps_its_own() -> None:
    money = record("Money", cents="long", unit={"type": "enum", "name": "Unit", "symbols": ["E"]})
    order = record("Order", "shop", total=["null", "Money"])
    unit = {"type": "enum", "name": "Unit", "symbols": ["E"], "namespace": ""}
    written = record("Money", "", cents="long", unit=unit)
    assert standalone(order, money) == record("Order", "shop", total=["null", written])


def test_a_union_of_references_is_a_schema() -> None:
    first, second = record("A", "n", x="int"), record("B", "n", a="A")
    assert standalone(["n.A", "n.B"], first, second) == [first, record("B", "n", a="n.A")]


def test_a_type_used_before_the_one_that_it_stands_in_is_defined_once() -> None:
    inner = {"type": "fixed", "name": "Id", "size": 4}
    outer = record("Outer", "n", id=inner)
    user = record("User", "n", id="Id", outer="Outer", values={"type": "map", "values": "Id"})
    assert standalone(user, outer) == record(
        "User",
        "n",
        id={**inner, "namespace": "n"},
        outer=record("Outer", "n", id="n.Id"),
        values={"type": "map", "values": "n.Id"},
    )


def test_types_within_themselves_end() -> None:
    node = record("Node", "n", next=["null", "Node"])
    assert standalone(record("List", "n", first="Node"), node) == record(
        "List", "n", first=record("Node", "n", next=["null", "n.Node"])
    )


@pytest.mark.parametrize(
    "schema", [record("O", "n", x="Missing"), {"type": "record"}, 5, record("O", "n", x=None)]
)
def test_what_is_not_a_schema_is_an_error(schema: Any) -> None:
    with pytest.raises(SchemaError):
        standalone(schema)


def test_what_is_not_json_is_an_error() -> None:
    with pytest.raises(SchemaError, match="not an Avro schema"):
        read_avro_schema("string")


@pytest.mark.parametrize("levels", [300, 900, 100_000])
def test_a_schema_that_is_too_deep_is_an_error_or_is_written(levels: int) -> None:
    deep = '{"type":"array","items":' * levels + '"int"' + "}" * levels
    try:
        assert standalone_avro_schema(deep, [deep]).count('"items"') == levels
    except SchemaError as error:
        assert "not an Avro schema" in str(error)
        assert levels > 300


@pytest.mark.parametrize(
    "schema",
    ['{"type":"record","name":"A","fields":5}', '{"type":"record","name":"A","fields":["x"]}'],
)
def test_fields_that_are_none_are_an_error(schema: str) -> None:
    for text, references in ((schema, []), ('"A"', [schema])):
        with pytest.raises(SchemaError, match="not an Avro schema"):
            standalone_avro_schema(text, references)


def test_a_record_has_the_fields_that_only_older_schemas_give_it() -> None:
    line = {"type": "record", "name": "Line", "fields": [{"name": "p", "type": "int"}]}
    money = {"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}
    new = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "line", "type": line},
            {"name": "total", "type": money},
            {"name": "renamed", "aliases": ["name"], "type": "string"},
        ],
    }
    # Its line has a Money before the place where the newer schema defines it.
    older_line = {**line, "fields": [{"name": "p", "type": "int"}, {"name": "tax", "type": money}]}
    old = {
        **new,
        "fields": [
            {"name": "line", "type": older_line},
            {"name": "name", "type": "string"},
            {"name": "note", "type": ["string", "null"]},
        ],
    }
    merged = json.loads(merged_avro_schema(json.dumps(new), [json.dumps(old)]))
    (found_line, total, renamed, note) = merged["fields"]
    tax = found_line["type"]["fields"][1]
    assert (tax["name"], tax["default"]) == ("tax", None)
    assert tax["type"] == ["null", {**money, "namespace": "shop"}]
    assert total == {"name": "total", "type": "shop.Money"}
    assert renamed == new["fields"][2]
    assert note == {"name": "note", "type": ["null", "string"], "default": None}


def test_schemas_without_more_fields_change_nothing() -> None:
    text = '{"type":"record","name":"A","fields":[{"name":"x","type":"long"}]}'
    narrower = text.replace("long", "int")
    assert merged_avro_schema(text, [narrower, '"string"', text]) == text
    with pytest.raises(SchemaError):
        merged_avro_schema(text, ['{"type":"record","name":"A","fields":[{}]}'])
