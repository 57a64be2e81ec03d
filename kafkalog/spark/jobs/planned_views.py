"""Views of logs that a job has listed already: where these are few, the job plans itself which task
reads what, without Spark's processes for planning, which would list them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kafkalog.spark.lake.task_groups import in_tasks
from kafkalog.spark.source.batch_reader import KafkaLogReader, ReadGroup
from kafkalog.spark.source.projection import view_schema
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import Read, planned_groups

Batches = Iterator[pa.RecordBatch]
# What a task makes of its rows of a view.
Reduction = Callable[[Batches], Batches]

# Each task gets the plan of all others too; Spark's own planning gives it its own alone.
_FEW_SEGMENTS = 10_000


def are_few(logs: Sequence[PartitionLog]) -> bool:
    """Return whether the logs have so few segments that a job plans how they are read."""
    return sum(len(log.segments) for log in logs) <= _FEW_SEGMENTS


def reduced_view(
    spark: SparkSession,
    view: str,
    log_dirs: Sequence[str],
    logs: Sequence[PartitionLog],
    options: Mapping[str, str],
    reduce: Reduction,
    schema: StructType,
) -> DataFrame:
    """Return what `reduce` makes of the rows of a view, in the tasks that read them. `logs` are
    those found under `log_dirs`, `options` the source's; without others all topics are read,
    internal ones included."""
    given = {"view": view, "subscribe": "*", **options}
    if not are_few(logs):
        whole = spark.read.format("kafkalog").options(**given).load(list(log_dirs))
        return whole.mapInArrow(reduce, schema)
    parsed = read_options({"paths": json.dumps(list(log_dirs)), **given})
    reader = KafkaLogReader(parsed, tuple(view_schema(parsed).names))

    def read(reads: Sequence[Read]) -> Batches:
        return reduce(reader.read(ReadGroup(reads)))

    return in_tasks(spark, planned_groups(parsed, list(logs)), read, schema)
