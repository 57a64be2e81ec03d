"""Tables with a row for each log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.inspection.groups.complete_from import complete_from
from kafkalog.spark.session import parallelism
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog, with_own_checkpoints

_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}
# Columns that say since when the commits in a log are complete.
REACH = (
    "cluster_id string, broker_id int, internal_partition int, complete_from_offset bigint, "
    "complete_from_ms bigint, damaged_ranges bigint"
)


def commits_complete_from(spark: SparkSession, logs: Sequence[PartitionLog]) -> DataFrame:
    """Return a row per log of `__consumer_offsets` in the columns of REACH; complete_from_ms is
    null where the log is complete since its beginning.

    States of all groups are exact from the latest of these times on. Rule: docs/format.md F328.
    """

    def reach(log: PartitionLog) -> tuple[object, ...]:
        return log.log_dir.cluster_id, log.log_dir.broker_id, log.partition, *complete_from(log)

    found = [log for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live]
    return rows_of_logs(spark, found, REACH, reach)


def rows_of_logs(
    spark: SparkSession,
    logs: Sequence[PartitionLog],
    columns: str,
    read: Callable[[PartitionLog], Sequence[object]],
) -> DataFrame:
    """Return a row for each log, made by `read` in a task of its own. `columns` are names and types
    in Spark's DDL: string, int and bigint."""
    found = [with_own_checkpoints(log) for log in logs]

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (each for batch in batches for each in batch.column(0).to_pylist()):
            yield one_row(columns, read(found[number]))

    tasks = min(len(found), 4 * parallelism(spark))
    return spark.range(0, len(found), 1, max(1, tasks)).mapInArrow(rows, columns)


def one_row(columns: str, values: Sequence[object]) -> pa.RecordBatch:
    """Return the values as a row of such columns."""
    names, types = zip(*(column.split() for column in columns.split(", ")), strict=True)
    arrays = [pa.array([value], _TYPES[name]) for value, name in zip(values, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))
