"""The columns that a run adds to a table of records when it decodes keys or values, and what a
table that has other ones becomes.

A table only ever gets more: new fields are nullable columns, a field that a run does not have is
null in its rows, a number becomes a wider one where the format can say so. Rules: docs/ingest.md
F537, F538 and F935 to F937.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_fields, arrow_type
from kafkalog.errors import RefusedOptionError

# A column in the JSON form of Spark's types, as in schemas/tables/: name, type, nullable, metadata.
Field = Mapping[str, Any]
DECODED_VALUES = frozenset({"key_decoded", "value_decoded"})
DECODED_COLUMNS = DECODED_VALUES | {
    f"{column}_{fact}" for column in ("key", "value") for fact in ("error", "schema_id")
}
# Only Confluent's formats have it: another format of the same contents has null there.
_OPTIONAL = "schema_id"
# Each can hold all values of those before it.
_WIDENING = (("byte", "short", "integer", "long"), ("float", "double"))
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class DecodedColumns:
    """The columns of a run that decodes.

    `evolving` are those of key and value whose columns may change an existing table; `read_as` says
    for messages with which schemas each is read.
    """

    fields: tuple[Field, ...] = ()
    evolving: frozenset[str] = frozenset()
    read_as: Mapping[str, str] = field(default_factory=dict)


NO_COLUMNS = DecodedColumns()


@dataclass(frozen=True, slots=True)
class Differences:
    """How the type of a run differs from that of a table, each as a text: fields that the table
    lacks, fields that the run lacks, numbers that have to become wider or that the table has wider
    already, and what no type holds."""

    added: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    widened: list[str] = field(default_factory=list)
    narrower: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)

    def all(self) -> Iterator[str]:
        """Yield all texts, the worst first."""
        return chain(self.conflicts, self.widened, self.added, self.absent, self.narrower)


def merged_columns(
    place: str, of_table: Sequence[Field], run: DecodedColumns, *, can_widen: bool = False
) -> tuple[Field, ...]:
    """Return the decoded columns of a table after a run: the table's, then those that are new.

    `can_widen` says whether the table's format can give a column a wider type. Raises
    RefusedOptionError where the table cannot hold the rows of the run, or must not be changed.
    """
    has, writes = ({each["name"]: each for each in fields} for fields in (of_table, run.fields))
    merged: list[Field] = []
    for name in dict.fromkeys([*has, *writes]):
        column, _, fact = name.partition("_")
        if name not in writes and fact != _OPTIONAL:
            raise RefusedOptionError(
                f"--{column}-format",
                f"missing: {place} has column {name}, and this run would leave it empty; give the "
                "format and the schema of the earlier runs, or another table",
            )
        found = Differences()
        merged.append(_merged_column(name, has.get(name), writes.get(name), found))
        _refuse_differences(place, column, found, run, can_widen=can_widen)
    return tuple(merged)


def _merged_column(
    name: str, of_table: Field | None, of_run: Field | None, found: Differences
) -> Field:
    if of_run is None:
        found.absent.append(f"{name} is missing in this run")
        return of_table or {}
    if of_table is None:
        found.added.append(_is_new(name, of_run["type"]))
        return of_run
    return {**of_table, "type": merged_type(of_table["type"], of_run["type"], name, found)}


def merged_type(ours: Any, theirs: Any, path: str, found: Differences) -> Any:
    """Return our type with the fields that only theirs has, and with numbers as wide as the wider
    of both; where no type holds both it stays ours. Both are in the JSON form of Spark's types."""
    kinds = [each if isinstance(each, str) else each["type"] for each in (ours, theirs)]
    if kinds == ["struct", "struct"]:
        return {**ours, "fields": _merged_fields(ours["fields"], theirs["fields"], path, found)}
    if kinds == ["array", "array"]:
        element = f"{path}.element"
        inner = merged_type(ours["elementType"], theirs["elementType"], element, found)
        return {**ours, "elementType": inner}
    if kinds == ["map", "map"] and ours["keyType"] == theirs["keyType"]:
        inner = merged_type(ours["valueType"], theirs["valueType"], f"{path}.value", found)
        return {**ours, "valueType": inner}
    if ours == theirs:
        return ours
    text = f"{path} is {_text(ours)} in the table and {_text(theirs)} in this run"
    if _is_wider(theirs, ours):
        found.widened.append(text)
        return theirs
    (found.narrower if _is_wider(ours, theirs) else found.conflicts).append(text)
    return ours


def _merged_fields(
    ours: Sequence[Field], theirs: Sequence[Field], path: str, found: Differences
) -> list[Field]:
    other = {each["name"]: each for each in theirs}
    names = {each["name"].lower(): each["name"] for each in ours}
    merged: list[Field] = []
    for each in ours:
        place = f"{path}.{each['name']}"
        if each["name"] in other:
            kind = merged_type(each["type"], other[each["name"]]["type"], place, found)
            merged.append({**each, "type": kind})
        else:
            found.absent.append(f"{place} is missing in this run")
            merged.append(each)
    for name in other.keys() - {each["name"] for each in ours}:
        similar = names.get(name.lower())
        if similar is not None:
            # Spark and Delta take both for one.
            found.conflicts.append(f"{path}.{name} is {similar} in the table")
    new = [each for each in theirs if each["name"].lower() not in names]
    found.added.extend(_is_new(f"{path}.{each['name']}", each["type"]) for each in new)
    return [*merged, *new]


def _refuse_differences(
    place: str, column: str, found: Differences, run: DecodedColumns, *, can_widen: bool
) -> None:
    is_evolving = column in run.evolving
    refused = [*found.conflicts, *(() if can_widen else found.widened)]
    if not refused and (is_evolving or not any(found.all())):
        return
    texts = refused if is_evolving else list(found.all())
    shown = ", ".join(texts[:_MOST_NAMED])
    more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    read_as = run.read_as.get(column)
    with_schema = f" ({read_as})" if read_as else ""
    keep = f"give the schema of the earlier runs with --{column}-schema or --{column}-schema-id"
    advice = (
        f"a column keeps its type: {keep}, or another table"
        if refused
        else f"{keep}, or --merge-schema, which adds new fields as nullable columns"
    )
    raise RefusedOptionError(f"--{column}-format", f"{place}: {shown}{more}{with_schema}; {advice}")


def with_columns_of(rows: pa.RecordBatch, fields: Iterable[Field]) -> pa.RecordBatch:
    """Return rows with decoded columns in the types of a table: fields that they lack are null."""
    for each in arrow_fields(fields):
        index = rows.schema.get_field_index(each.name)
        if index < 0:
            rows = rows.append_column(each, pa.nulls(len(rows), each.type))
        elif rows.schema.field(index).type != each.type:
            rows = rows.set_column(index, each, rows.column(index).cast(each.type))
    return rows


def _is_wider(wide: Any, narrow: Any) -> bool:
    if not isinstance(wide, str) or not isinstance(narrow, str):
        return False
    for order in _WIDENING:
        if wide in order and narrow in order:
            return order.index(wide) > order.index(narrow)
    decimals = [_DECIMAL.fullmatch(each) for each in (wide, narrow)]
    if decimals[0] is None or decimals[1] is None or decimals[0][2] != decimals[1][2]:
        return False
    return int(decimals[0][1]) > int(decimals[1][1])


def _is_new(path: str, spark_type: object) -> str:
    return f"{path} ({_text(spark_type)}) is new"


def _text(spark_type: object) -> str:
    return str(arrow_type(spark_type))
