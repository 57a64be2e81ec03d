"""Which columns a read gives. In Spark's Python sources the schema is the only projection."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql.types import StructType

from kafkalog.errors import SchemaError
from kafkalog.schemas import table_json
from kafkalog.views.options.options import VIEW_TABLES, ReadOptions, View, view_columns


def whole_schema(view: View) -> StructType:
    """Return all columns that a view can give."""
    return table_struct(VIEW_TABLES[view])


def table_struct(table: str) -> StructType:
    """Return all columns of a table."""
    return StructType.fromJson(json.loads(table_json(table)))


def view_schema(options: ReadOptions) -> StructType:
    """Return the columns that a read gives where the user gives no schema."""
    return of_columns(whole_schema(options.view), view_columns(options))


def of_columns(whole: StructType, columns: Sequence[str]) -> StructType:
    """Return some columns of a schema, in the order given."""
    return StructType([whole[name] for name in columns])


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
