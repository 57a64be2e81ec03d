"""Salvage as a job: partitions in parallel, a task each, then what a log directory has at its
top."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from kafkalog.columns.table_rows import table_batch
from kafkalog.inspection.partitions.salvage import SalvageSettings
from kafkalog.inspection.partitions.salvaged_logs import finish_salvage, salvaged_log
from kafkalog.spark.kept_rows import KeptRows
from kafkalog.spark.tables import spark_schema
from kafkalog.storage.files.whole_directory import whole_directory
from kafkalog.storage.partition_log import PartitionLog, with_own_checkpoints


def salvage_in_tasks(
    spark: SparkSession, logs: Sequence[PartitionLog], target: str, settings: SalvageSettings
) -> KeptRows:
    """Write the logs of one log directory into the new one `target`; return the rows of table
    `salvage`."""
    reads = [with_own_checkpoints(log) for log in logs]
    tasks = spark.range(0, len(reads), 1, max(len(reads), 1))
    with whole_directory(target, os.fsync) as scratch:
        run = _salvage_tasks(reads, scratch, target, settings)
        # Once: what the tasks write must not be written again.
        schema = spark_schema("salvage")
        rows = KeptRows(spark, schema, tasks.mapInArrow(run, schema).toArrow())
        finish_salvage(logs[0].log_dir.path, scratch, list(rows))
    return rows


def _salvage_tasks(
    logs: Sequence[PartitionLog], scratch: str, target: str, settings: SalvageSettings
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                row = salvaged_log(logs[number], scratch, target, settings)
                yield table_batch("salvage", [row], {})

    return run
