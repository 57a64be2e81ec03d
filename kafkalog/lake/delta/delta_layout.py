"""The columns and partitions of a Delta table of records, and which tables tasks can write to.

Rules: docs/ingest.md F530 to F536.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kafkalog.errors import OptionError, SchemaError
from kafkalog.lake.decoded_columns import DECODED_COLUMNS, Field
from kafkalog.lake.layout import RECORDS, PartitionBy, TableLayout
from kafkalog.schemas import table_json

# Properties of tables that only Spark's writer heeds: files have other names for columns, or rows
# are checked.
_COLUMN_MAPPING = "delta.columnMapping.mode"
_CONSTRAINT = "delta.constraints."
_TIME_COLUMNS: dict[PartitionBy, Field] = {
    PartitionBy.DAY: {
        "name": "day",
        "type": "date",
        "nullable": True,
        "metadata": {"comment": "Day of the timestamp in UTC, null without one"},
    },
    PartitionBy.HOUR: {
        "name": "hour",
        "type": "string",
        "nullable": True,
        "metadata": {
            "comment": "Hour of the timestamp in UTC, such as 2026-11-23-14; null without one"
        },
    },
}
_OTHER_TABLE = "the table has other columns than records; give another name or --output-dir"


def records_schema(decoded: Iterable[Field], layout: TableLayout) -> dict[str, Any]:
    """Return the columns of a table of records as Spark's and Delta's JSON: with those of decoded
    keys and values, and those that the table is partitioned by."""
    schema: dict[str, Any] = json.loads(table_json(RECORDS))
    times = [_TIME_COLUMNS[by] for by in layout.partition_by if by in _TIME_COLUMNS]
    fields = [*schema["fields"], *decoded, *times]
    return {**schema, "fields": [dict(each) for each in fields]}


def fitting_layout(
    place: str, layout: TableLayout, partition_columns: Sequence[str], fields: Iterable[Field]
) -> TableLayout:
    """Return how tasks write for a table that has these partitions and columns, which it keeps.

    Raises OptionError for other partitions than the table's, SchemaError for another table.
    """
    found, given = list(partition_columns), [each.value for each in layout.partition_by]
    if given and found != given:
        own = f"--partition-by {' --partition-by '.join(found)}" if found else "no partitions"
        raise OptionError("--partition-by", ", ".join(given), f"{own}, as {place} has it")
    known = {each.value for each in PartitionBy}
    if not known.issuperset(found):
        raise SchemaError(f"{place} is partitioned by {', '.join(found)}: {_OTHER_TABLE}")
    own_layout = replace(layout, partition_by=tuple(PartitionBy(each) for each in found))
    types = {each["name"]: each["type"] for each in fields}
    for field in records_schema((), own_layout)["fields"]:
        name, wanted = field["name"], field["type"]
        if name not in DECODED_COLUMNS and types.get(name) != wanted:
            has = types.get(name, "missing")
            raise SchemaError(f"{place}: column {name} is {has}, not {wanted}: {_OTHER_TABLE}")
    return own_layout


def why_not_by_tasks(properties: Mapping[str, Any]) -> str | None:
    """Return which property of a table only Spark's writer heeds, None where tasks can write its
    files."""
    if properties.get(_COLUMN_MAPPING, "none") != "none":
        return f"the table has {_COLUMN_MAPPING}"
    return next((f"the table has {name}" for name in properties if _CONSTRAINT in name), None)
