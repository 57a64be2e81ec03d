"""Arrow's types for the schemas that Spark reads, exactly as Spark expects them from a source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from kafkalog.errors import SchemaError
from kafkalog.schemas import table_fields

_SIMPLE_TYPES = {
    "binary": pa.binary(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def arrow_type(spark_type: Any) -> pa.DataType:
    """Return the Arrow type of a Spark type in JSON form. Raises SchemaError for a type that files
    cannot hold."""
    if isinstance(spark_type, str):
        return _simple_type(spark_type)
    if spark_type["type"] == "array":
        element = pa.field(
            "element", arrow_type(spark_type["elementType"]), nullable=spark_type["containsNull"]
        )
        return pa.list_(element)
    if spark_type["type"] == "map":
        key, value = arrow_type(spark_type["keyType"]), arrow_type(spark_type["valueType"])
        return pa.map_(key, pa.field("value", value, nullable=spark_type["valueContainsNull"]))
    return pa.struct(arrow_fields(spark_type["fields"]))


def _simple_type(name: str) -> pa.DataType:
    decimal = _DECIMAL.fullmatch(name)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if name not in _SIMPLE_TYPES:
        raise SchemaError(f"a column of type {name} cannot be written to a file")
    return _SIMPLE_TYPES[name]


def arrow_fields(fields: Iterable[Mapping[str, Any]]) -> list[pa.Field]:
    """Return the Arrow fields of Spark's fields in JSON form."""
    return [_arrow_field(field) for field in fields]


def _arrow_field(field: Mapping[str, Any]) -> pa.Field:
    return pa.field(field["name"], arrow_type(field["type"]), nullable=field["nullable"])


@cache
def arrow_schema(name: str, columns: tuple[str, ...] | None = None) -> pa.Schema:
    """Return the Arrow schema of a view or table, or of some of its columns in the order given."""
    fields = {field["name"]: _arrow_field(field) for field in table_fields(name)}
    if columns is None:
        return pa.schema(list(fields.values()))
    unknown = [column for column in columns if column not in fields]
    if unknown:
        raise SchemaError(f"{name} has no column {', '.join(unknown)}; it has {', '.join(fields)}")
    return pa.schema([fields[column] for column in columns])
