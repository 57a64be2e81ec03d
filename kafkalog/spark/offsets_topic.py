"""How far back the logs of `__consumer_offsets` tell what was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.columns.complete_from import complete_from
from kafkalog.storage.log_dir import PartitionLog, with_own_checkpoints
from kafkalog.storage.names import CONSUMER_OFFSETS

# Columns of what tells how far commits are complete.
REACH = (
    "cluster_id string, broker_id int, internal_partition int, complete_from_offset bigint, "
    "complete_from_ms bigint, damaged_ranges bigint"
)


def commits_complete_from(spark: SparkSession, logs: Sequence[PartitionLog]) -> DataFrame:
    """A row per log of `__consumer_offsets`, read by a task each: cluster_id, broker_id,
    internal_partition, complete_from_offset, complete_from_ms, null for at all times, and
    damaged_ranges.

    States of all groups can be told exactly from the latest of these times on. Rule:
    docs/format.md F328.
    """
    found = [
        with_own_checkpoints(log) for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live
    ]

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (each for batch in batches for each in batch.column(0).to_pylist()):
            log = found[number]
            row = (log.log_dir.cluster_id, log.log_dir.broker_id, log.partition)
            yield reach_batch((*row, *complete_from(log)))

    numbers = spark.range(0, len(found), 1, max(1, len(found)))
    return numbers.mapInArrow(rows, REACH)


def reach_batch(row: Sequence[object]) -> pa.RecordBatch:
    """One row of REACH."""
    types = [pa.string(), pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.int64()]
    names = [column.split()[0] for column in REACH.split(", ")]
    values = [pa.array([value], each) for value, each in zip(row, types, strict=True)]
    return pa.RecordBatch.from_arrays(values, names=names)
