"""Which columns a read gives: those of its view, or those of option `columns`."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.errors import OptionError
from kafkalog.schemas import table_fields
from kafkalog.views.options.options import ReadOptions, View
from kafkalog.words import name_suggestions

# Exactly the columns of Spark's own Kafka source.
KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS_COLUMN = "headers"

VIEW_TABLES = {view: view.value for view in View} | {View.FAULTS: View.BYTE_RANGES.value}


def columns_of_table(table: str) -> tuple[str, ...]:
    """Return the names of all columns of a table."""
    return tuple(field["name"] for field in table_fields(table))


def view_columns(options: ReadOptions) -> tuple[str, ...]:
    """Return the columns that a read gives where nothing else says which. Raises OptionError for
    a column that the view does not have."""
    whole = columns_of_table(VIEW_TABLES[options.view])
    if options.columns is not None:
        return chosen_columns(options.view.value, whole, options.columns)
    if options.view is not View.RECORDS:
        return whole
    metadata = [name for name in whole if name not in (*KAFKA_COLUMNS, HEADERS_COLUMN)]
    return (
        *KAFKA_COLUMNS,
        *([HEADERS_COLUMN] if options.include_headers else []),
        *(metadata if options.include_metadata else []),
    )


def chosen_columns(view: str, whole: Sequence[str], columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that option `columns` names, in its order. Raises OptionError."""
    unknown = [name for name in columns if name not in whole]
    if unknown:
        allowed = f"columns of view {view}: {name_suggestions(unknown, whole)}"
        raise OptionError("columns", ", ".join(unknown), allowed)
    if len(set(columns)) < len(columns):
        raise OptionError("columns", ", ".join(columns), "each column once")
    return columns
