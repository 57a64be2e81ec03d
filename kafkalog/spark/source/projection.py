"""Which columns a read gives. In Spark's Python sources the schema is the only projection."""

from __future__ import annotations

import json

from pyspark.sql.types import StructType

from kafkalog.errors import OptionError, SchemaError
from kafkalog.schemas import table_json
from kafkalog.views.options.options import ReadOptions, View

# Exactly the columns of Spark's own Kafka source.
KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS_COLUMN = "headers"

VIEW_TABLES = {view: view.value for view in View} | {View.FAULTS: View.BYTE_RANGES.value}


def whole_schema(view: View) -> StructType:
    """Return all columns that a view can give."""
    return table_struct(VIEW_TABLES[view])


def table_struct(table: str) -> StructType:
    """Return all columns of a table."""
    return StructType.fromJson(json.loads(table_json(table)))


def chosen_columns(view: str, whole: StructType, columns: tuple[str, ...]) -> StructType:
    """Return the columns that option `columns` names, in its order. Raises OptionError."""
    unknown = [name for name in columns if name not in whole.names]
    if unknown:
        allowed = f"columns of view {view}: {', '.join(whole.names)}"
        raise OptionError("columns", ", ".join(unknown), allowed)
    if len(set(columns)) < len(columns):
        raise OptionError("columns", ", ".join(columns), "each column once")
    return StructType([whole[name] for name in columns])


def view_schema(options: ReadOptions) -> StructType:
    """Return the columns that a read gives where the user gives no schema."""
    schema = whole_schema(options.view)
    if options.columns is not None:
        return chosen_columns(options.view.value, schema, options.columns)
    if options.view is not View.RECORDS:
        return schema
    metadata = [name for name in schema.names if name not in (*KAFKA_COLUMNS, HEADERS_COLUMN)]
    wanted = [
        *KAFKA_COLUMNS,
        *([HEADERS_COLUMN] if options.include_headers else []),
        *(metadata if options.include_metadata else []),
    ]
    return StructType([schema[name] for name in wanted])


def projected_columns(view: View, schema: StructType) -> tuple[str, ...]:
    """Return the columns of a schema, which may be the user's own. Raises SchemaError if it asks
    for what the view does not have."""
    return known_columns(view.value, whole_schema(view), schema)


def known_columns(view: str, whole: StructType, schema: StructType) -> tuple[str, ...]:
    """Return the columns of a schema. Raises SchemaError if it asks for what is not in the whole
    one."""
    for field in schema:
        if field.name not in whole.names:
            raise SchemaError(
                f"view {view} has no column {field.name}; it has {', '.join(whole.names)}"
            )
        known = whole[field.name]
        if field.dataType.simpleString() != known.dataType.simpleString():
            raise SchemaError(
                f"column {field.name} is of type {known.dataType.simpleString()}, "
                f"the schema says {field.dataType.simpleString()}"
            )
        if not field.nullable:
            raise SchemaError(f"column {field.name} is nullable, the schema says it is not")
    return tuple(schema.names)
