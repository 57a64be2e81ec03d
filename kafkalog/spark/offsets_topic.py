"""What the logs of `__consumer_offsets` tell of themselves: how far back states can be told, and
which partition is whose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from kafkalog.columns.complete_from import complete_from
from kafkalog.coordination.group_partitions import group_partition, partition_count
from kafkalog.storage.log_dir import PartitionLog, with_own_checkpoints
from kafkalog.storage.names import CONSUMER_OFFSETS

_REACH = (
    "cluster_id string, broker_id int, internal_partition int, complete_from_offset bigint, "
    "complete_from_ms bigint"
)


def offsets_logs(logs: Sequence[PartitionLog]) -> list[PartitionLog]:
    """The logs of `__consumer_offsets` that a broker would serve."""
    return [log for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live]


def commits_complete_from(spark: SparkSession, logs: Sequence[PartitionLog]) -> DataFrame:
    """A row per log of `__consumer_offsets`, read by a task each: cluster_id, broker_id,
    internal_partition, complete_from_offset, and complete_from_ms, null for at all times.

    States of all groups can be told exactly from the latest of these times on. Rule:
    docs/format.md F328.
    """
    found = [with_own_checkpoints(log) for log in offsets_logs(logs)]
    types = [pa.string(), pa.int32(), pa.int32(), pa.int64(), pa.int64()]
    names = [column.split()[0] for column in _REACH.split(", ")]

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (each for batch in batches for each in batch.column(0).to_pylist()):
            log = found[number]
            row = (log.log_dir.cluster_id, log.log_dir.broker_id, log.partition)
            values = zip((*row, *complete_from(log)), types, strict=True)
            yield pa.RecordBatch.from_arrays([pa.array([v], t) for v, t in values], names=names)

    numbers = spark.range(0, len(found), 1, max(1, len(found)))
    return numbers.mapInArrow(rows, _REACH)


def offsets_partition_count(logs: Sequence[PartitionLog], leaders: DataFrame | None) -> int | None:
    """How many partitions `__consumer_offsets` has: by `leaders`, as partition_leaders of
    analysis.cluster_metadata gives them, else by what there is; None where some are missing."""
    if leaders is not None:
        led = leaders.where(F.col("topic") == CONSUMER_OFFSETS).select("partition").collect()
        if led:
            return partition_count([row.partition for row in led])
    return partition_count(
        [log.partition for log in offsets_logs(logs) if log.partition is not None]
    )


def with_offsets_partition(groups: DataFrame, count: int | None) -> DataFrame:
    """Rows with a group_id, with offsets_partition: the partition of `__consumer_offsets` that the
    group belongs to if there are `count`; null for None. Rule: docs/format.md F323."""
    if count is None:
        return groups.withColumn("offsets_partition", F.lit(None).cast("int"))
    schema = StructType([*groups.schema, StructField("offsets_partition", IntegerType())])

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            partitions = [group_partition(name, count) for name in batch["group_id"].to_pylist()]
            yield batch.append_column("offsets_partition", pa.array(partitions, pa.int32()))

    return groups.mapInArrow(rows, schema)
