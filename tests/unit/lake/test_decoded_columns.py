"""What a table's decoded columns become when a run has others. Rules: F538, F935 to F937."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafkalog.errors import RefusedOptionError
from kafkalog.lake.decoded_columns import (
    DecodedColumns,
    Differences,
    Field,
    merged_columns,
    merged_type,
    with_columns_of,
)


def struct(**fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [column(name, kind) for name, kind in fields.items()]}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}


def column(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def values(kind: Any, *more: Field) -> tuple[Field, ...]:
    return (column("value_decoded", kind), column("value_error", "string"), *more)


def run(fields: tuple[Field, ...], *evolving: str) -> DecodedColumns:
    return DecodedColumns(
        fields, frozenset(evolving), {"value": "this run reads schema ids 1, 3 as 3"}
    )


def test_new_fields_follow_those_of_the_table_at_every_depth() -> None:
    of_table = struct(b="long", lines=array(struct(p="integer")), tags=map_of(struct(x="string")))
    of_run = struct(
        a="string", tags=map_of(struct(y="date", x="string")), lines=array(struct(q="long"))
    )
    merged = merged_columns("t", values(of_table), run(values(of_run), "value"))
    assert merged == values(
        struct(
            b="long",
            lines=array(struct(p="integer", q="long")),
            tags=map_of(struct(x="string", y="date")),
            a="string",
        )
    )


def test_without_evolving_the_first_differences_and_the_schema_ids_are_named() -> None:
    of_run = struct(id="long", a="string", b="string", c="string", d="string")
    with pytest.raises(RefusedOptionError) as refused:
        merged_columns("t", values(struct(id="long", z="date")), run(values(of_run)))
    assert str(refused.value) == (
        "--value-format: t: value_decoded.a (string) is new, value_decoded.b (string) is new, "
        "value_decoded.c (string) is new and 2 more (this run reads schema ids 1, 3 as 3); give "
        "the schema of the earlier runs with --value-schema or --value-schema-id, or "
        "--merge-schema, which adds new fields as nullable columns"
    )


@pytest.mark.parametrize(
    ("of_table", "of_run"),
    [
        (struct(id="long"), struct(id="string")),
        (struct(id="long"), "long"),
        (struct(id=struct(a="long")), struct(id=array("long"))),
        (struct(id="long"), struct(ID="long")),
        (struct(n="decimal(9,2)"), struct(n="decimal(9,3)")),
        (map_of("long"), {**map_of("long"), "keyType": "long"}),
    ],
)
def test_a_type_that_changed_is_refused_for_every_format(of_table: Any, of_run: Any) -> None:
    with pytest.raises(RefusedOptionError, match="a column keeps its type: give the schema of"):
        merged_columns("t", values(of_table), run(values(of_run), "value"), can_widen=True)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("integer", "long"),
        ("byte", "integer"),
        ("float", "double"),
        ("decimal(9,2)", "decimal(12,2)"),
    ],
)
def test_a_number_becomes_wider_where_the_format_can_say_so(narrow: str, wide: str) -> None:
    of_run = run(values(struct(n=wide)), "value")
    merged = merged_columns("t", values(struct(n=narrow)), of_run, can_widen=True)
    assert merged == values(struct(n=wide))
    with pytest.raises(RefusedOptionError, match=r"value_decoded\.n is .* in the table"):
        merged_columns("t", values(struct(n=narrow)), of_run)
    # A run whose numbers are narrower takes the table's type.
    less = run(values(struct(n=narrow)), "value")
    assert merged_columns("t", values(struct(n=wide)), less) == values(struct(n=wide))


def test_a_column_that_a_run_would_leave_empty_is_refused() -> None:
    of_table = values("long", column("value_schema_id", "integer"))
    with pytest.raises(RefusedOptionError, match="t has column value_decoded, and this run would"):
        merged_columns("t", of_table, run((), "key", "value"))
    # An id of a schema is not part of the contents.
    assert merged_columns("t", of_table, run(values("long"), "value")) == of_table


def test_a_table_of_bytes_gets_decoded_columns_only_where_that_is_requested() -> None:
    with pytest.raises(RefusedOptionError, match=r"value_decoded .* is new"):
        merged_columns("t", (), run(values("long")))
    assert merged_columns("t", (), run(values("long"), "value")) == values("long")


def test_types_of_one_run_are_merged_to_the_wider_one_and_ours_counts() -> None:
    found = Differences()
    ours, theirs = struct(a="string", n="integer"), struct(n="long", a="long", A="long")
    assert merged_type(ours, theirs, "", found) == struct(a="string", n="long")


def test_rows_get_the_columns_of_the_table() -> None:
    rows = pa.record_batch(
        {"offset": [7], "value_decoded": [{"id": 1, "lines": [{"p": 2}]}], "value_error": [None]}
    )
    kind = struct(note="string", id="long", lines=array(struct(q="string", p="long")))
    fields = values(kind, column("value_schema_id", "integer"))
    assert with_columns_of(rows, fields).to_pylist() == [
        {
            "offset": 7,
            "value_decoded": {"note": None, "id": 1, "lines": [{"q": None, "p": 2}]},
            "value_error": None,
            "value_schema_id": None,
        }
    ]
