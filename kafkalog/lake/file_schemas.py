"""Columns of files as Spark knows them, with the comments of the table's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from kafkalog.columns.arrow_types import arrow_fields, arrow_schema
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.table_writer import parquet_writer
from kafkalog.schemas import table_json

_NO_ROWS = "no-rows.parquet"
# Where Spark looks in Parquet for its own schema, which has comments.
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


@cache
def file_metadata(table: str) -> dict[bytes, bytes]:
    """Return what a file of a table has beside its columns."""
    return {_SPARK_SCHEMA: table_json(table).encode()}


def file_schema(table: str) -> pa.Schema:
    """Return the columns of the files of a table."""
    return arrow_schema(table).with_metadata(file_metadata(table))


def schema_with(table: str, fields: Sequence[Mapping[str, Any]]) -> pa.Schema:
    """Return the columns of files that have more than a table: `fields`, in the JSON form of
    Spark's schemas, after those of the table."""
    known = json.loads(table_json(table))
    described = json.dumps({**known, "fields": [*known["fields"], *fields]})
    columns = [*arrow_schema(table), *arrow_fields(fields)]
    return pa.schema(columns, metadata={_SPARK_SCHEMA: described.encode()})


def write_no_rows(directory: OutputDirectory, schema: pa.Schema) -> None:
    """Write a file without rows, so that readers of the directory know the columns."""
    with directory.create(_NO_ROWS) as sink, parquet_writer(sink, schema):
        pass
    directory.flush([_NO_ROWS])
