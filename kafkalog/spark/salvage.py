"""Salvage as a job: partitions in parallel, a task each, then what a log directory has at its
top."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Row, SparkSession

from kafkalog.columns.salvage import SalvageSettings
from kafkalog.columns.salvaged_logs import finish_salvage, salvaged_log
from kafkalog.columns.table_rows import table_batch
from kafkalog.spark.tables import table_schema
from kafkalog.storage.output_files import new_directory
from kafkalog.storage.partition_log import PartitionLog, with_own_checkpoints


def salvage(
    spark: SparkSession, logs: Sequence[PartitionLog], target: str, settings: SalvageSettings
) -> list[Row]:
    """Write the logs of one log directory into the new one `target`; the rows of table
    `salvage`."""
    new_directory(target)
    reads = [with_own_checkpoints(log) for log in logs]
    tasks = spark.range(0, len(reads), 1, max(len(reads), 1))
    salvaged = tasks.mapInArrow(_salvage_tasks(reads, target, settings), table_schema("salvage"))
    rows = salvaged.collect()  # once: what the tasks write must not be written again
    finish_salvage(logs[0].log_dir.path, target, [row.asDict() for row in rows])
    return rows


def _salvage_tasks(
    logs: Sequence[PartitionLog], target: str, settings: SalvageSettings
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                row = salvaged_log(logs[number], target, settings)
                yield table_batch("salvage", [row], {})

    return run
