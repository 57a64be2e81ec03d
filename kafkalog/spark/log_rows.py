"""A row per log, read by a task each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.spark.session import parallelism
from kafkalog.storage.partition_log import PartitionLog, with_own_checkpoints

_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}


def rows_of_logs(
    spark: SparkSession,
    logs: Sequence[PartitionLog],
    columns: str,
    read: Callable[[PartitionLog], Sequence[object]],
) -> DataFrame:
    """What `read` tells of each log, in `columns`, names and types as in Spark's DDL: of strings,
    int and bigint."""
    found = [with_own_checkpoints(log) for log in logs]

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (each for batch in batches for each in batch.column(0).to_pylist()):
            yield one_row(columns, read(found[number]))

    tasks = min(len(found), 4 * parallelism(spark))
    return spark.range(0, len(found), 1, max(1, tasks)).mapInArrow(rows, columns)


def one_row(columns: str, values: Sequence[object]) -> pa.RecordBatch:
    """The values as a row of such columns."""
    names, types = zip(*(column.split() for column in columns.split(", ")), strict=True)
    arrays = [pa.array([value], _TYPES[name]) for value, name in zip(values, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))
