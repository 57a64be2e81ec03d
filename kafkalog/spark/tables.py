"""Writing result tables: schemas from schemas/tables/, a re-run replaces the rows of its inputs."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafkalog.errors import KafkaLogError, SchemaError
from kafkalog.schemas import table_json
from kafkalog.spark.whole_tables import write_whole

INPUT_COLUMN = "input_path"
# A row: in the order of the schema, or by column.
_Values = Sequence[Any] | Mapping[str, Any]


def spark_schema(table: str) -> StructType:
    """Return the schema of a table, with a comment on every column."""
    return StructType.fromJson(json.loads(table_json(table)))


def local_rows(spark: SparkSession, rows: Iterable[_Values], schema: StructType | str) -> DataFrame:
    """Return rows of plain values as a DataFrame. From a list Spark makes one in Python workers,
    which takes a second where they have not started yet."""
    fields = schema if isinstance(schema, StructType) else _parsed(schema)
    return spark.createDataFrame(arrow_rows(rows, fields), fields)


def show_rows(
    spark: SparkSession,
    table: str,
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    count: int,
) -> None:
    """Print the first rows, by topic and partition, of some columns of a table; none for 0."""
    if count:
        first = heapq.nsmallest(count + 1, rows, key=_place)
        schema = StructType([spark_schema(table)[name] for name in columns])
        shown = [[row[name] for name in columns] for row in first]
        local_rows(spark, shown, schema).show(count, truncate=False)


def _place(row: Mapping[str, Any]) -> tuple[object, ...]:
    texts, numbers = ("topic", "file", "phase", "group_id"), ("partition", "position")
    topic, *rest = (row.get(name) or "" for name in texts)
    partition, position = (row.get(name) or 0 for name in numbers)
    return topic, partition, *rest, position


def arrow_rows(rows: Iterable[_Values], schema: StructType) -> pa.Table:
    """Return rows of plain values as Arrow's."""
    values = [
        row if isinstance(row, Mapping) else dict(zip(schema.names, row, strict=True))
        for row in rows
    ]
    return pa.Table.from_pylist(values, schema=to_arrow_schema(schema))


def _parsed(schema: str) -> StructType:
    """Return columns that are given as Spark's DDL."""
    found = StructType.fromDDL(schema)
    if not isinstance(found, StructType):
        raise TypeError(f"{schema} is not columns")
    return found


def with_table_schema(frame: DataFrame, table: str) -> DataFrame:
    """Return the frame with the comments of the table's schema. Raises SchemaError if it does not
    fit."""
    refuse_other_columns(frame.schema, table)
    return frame.select(
        *(
            F.col(field.name).alias(field.name, metadata=field.metadata)
            for field in spark_schema(table)
        )
    )


def refuse_other_columns(schema: StructType, table: str) -> None:
    """Raise SchemaError where columns are not those of a table's schema."""
    found = [(field.name, field.dataType) for field in schema]
    wanted = [(field.name, field.dataType) for field in spark_schema(table)]
    if found != wanted:
        raise SchemaError(f"table {table}: columns are {found}, its schema says {wanted}")


def described(frame: DataFrame) -> DataFrame:
    """Return the columns of a view or table with their types and what its schema says of them, a
    row each: `column`, `type`, `comment`."""
    rows = [
        (field.name, field.dataType.simpleString(), field.metadata.get("comment"))
        for field in frame.schema
    ]
    return local_rows(frame.sparkSession, rows, "column string, type string, comment string")


def read_table(spark: SparkSession, output: str, table: str, table_format: str) -> DataFrame:
    """Return a table that is there."""
    reader = spark.read.format(table_format)
    if table_format == "json":  # which keeps no schema of its own
        reader = reader.schema(spark_schema(table))
    return reader.load(os.path.join(output, table))


def replace_rows_by_spark(
    frame: DataFrame, output: str, table: str, table_format: str, inputs: Sequence[str]
) -> str:
    """Write the rows of `inputs` into the table by Spark's writer, in place of those it has of
    them; its path."""
    path = os.path.join(output, table)
    frame = with_table_schema(frame, table)
    if table_format == "delta":
        own = ", ".join(quoted(path) for path in inputs)
        writer = frame.write.format(table_format).mode("overwrite")
        writer.option("replaceWhere", f"{INPUT_COLUMN} IN ({own})").save(path)
        return path
    refuse_other_inputs(frame.sparkSession, output, table, table_format, inputs)
    write_whole(frame, path, table_format)
    return path


def write_derived(frame: DataFrame, output: str, table: str, table_format: str) -> str:
    """Write a table in place of what is there, whatever columns that has; its path.

    For tables that follow from others as a whole, with columns that the arguments decide.
    """
    path = os.path.join(output, table)
    if table_format == "delta":
        writer = frame.write.format(table_format).mode("overwrite")
        writer.option("overwriteSchema", "true").save(path)
    else:
        write_whole(frame, path, table_format)
    return path


def refuse_other_inputs(
    spark: SparkSession, output: str, table: str, table_format: str, inputs: Sequence[str]
) -> None:
    """Raise KafkaLogError where a table that is written as a whole has rows of other inputs, or the
    path something else."""
    if table_format == "delta":
        return
    path = os.path.join(output, table)
    others = _other_inputs(spark, path, table_format, table, inputs)
    if others is None:
        raise KafkaLogError(
            f"{path} exists and is not a table {table} in {table_format}: writing would delete "
            "what it holds; give another --output-dir"
        )
    if others:
        raise KafkaLogError(
            f"{path} holds rows of {', '.join(others)}: writing {table_format} would replace them; "
            "give another --output-dir, or use --format delta"
        )


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _other_inputs(
    spark: SparkSession, path: str, table_format: str, table: str, inputs: Sequence[str]
) -> list[str] | None:
    """Return the other inputs that a table has rows of, None if the path holds something else."""
    try:
        old = spark.read.format(table_format).schema(spark_schema(table)).load(path)
        other = old.where(~F.coalesce(F.col(INPUT_COLUMN).isin(list(inputs)), F.lit(False)))
        rows = other.select(INPUT_COLUMN).distinct().limit(3).collect()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise
    except Py4JJavaError:  # a file of another format
        return None
    found = [row[INPUT_COLUMN] for row in rows]
    return None if None in found else sorted(found)
