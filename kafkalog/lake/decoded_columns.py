"""The columns that a run adds to a table of records when it decodes keys or values.

Rules: docs/ingest.md F537 and F538.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkalog.columns.arrow_types import arrow_type
from kafkalog.errors import StatePositionError

# A column in the JSON form of Spark's types, as in schemas/tables/: name, type, nullable, metadata.
Field = Mapping[str, Any]
DECODED_VALUES = frozenset({"key_decoded", "value_decoded"})
DECODED_COLUMNS = DECODED_VALUES | {
    f"{column}_{fact}" for column in ("key", "value") for fact in ("error", "schema_id")
}


def refuse_other_columns(place: str, of_table: Iterable[Field], of_run: Iterable[Field]) -> None:
    """Raise StatePositionError where a table has other decoded columns than a run writes."""
    has, writes = ({each["name"]: each["type"] for each in fields} for fields in (of_table, of_run))
    for name in sorted(has.keys() | writes.keys()):
        if has.get(name) != writes.get(name):
            raise StatePositionError(
                f"{place}: column {name} is {_text(has.get(name))} in the table and "
                f"{_text(writes.get(name))} in this run: give the formats and schemas of the "
                "earlier runs, or another table"
            )


def _text(spark_type: object) -> str:
    return "missing" if spark_type is None else str(arrow_type(spark_type))
