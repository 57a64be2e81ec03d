"""Table `state_partitions`, which reports up to where the state of each partition is built."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.state.partition_rows import PARTITIONS, partition_rows, rows_of_others
from kafkalog.lake.table_writer import written_rows
from kafkalog.spark.delta_commit import FileChanges, files_of, table_version
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.jobs.tables.source_frames import sources_frame
from kafkalog.spark.jobs.tables.written_tables import commit_files, replace_rows, why_not_by_files
from kafkalog.spark.lake.delta_history import any_of
from kafkalog.spark.tables import with_table_schema
from kafkalog.views.engine import RowsInMemory
from kafkalog.views.planning.state_positions import StateRun
from kafkalog.views.planning.table_positions import StateSource


def write_partitions(
    spark: SparkSession,
    job: JobSettings,
    inputs: Sequence[str],
    run: StateRun,
    sources: Sequence[StateSource],
) -> str:
    """Write a row for each partition, once table `state` is written; return the table's path."""
    path = os.path.join(job.output_dir, PARTITIONS)
    keys = {*run.ends, *(run.replaced or ())}
    if not job.is_delta:
        rows = RowsInMemory(pa.Table.from_batches([partition_rows(sources)]))
        replace_rows(job, PARTITIONS, inputs, rows)
    elif not is_remote() and why_not_by_files(spark, job, PARTITIONS, is_whole=False) is None:
        _write_file(spark, job, path, keys, sources)
    else:
        frame = with_table_schema(sources_frame(spark, sources), PARTITIONS)
        writer = frame.write.format("delta").mode("overwrite")
        writer.option("replaceWhere", any_of(keys)).save(path)
    return path


def _write_file(
    spark: SparkSession,
    job: JobSettings,
    path: str,
    keys: set[TopicPartition],
    sources: Sequence[StateSource],
) -> None:
    """Make the table one file, which this process writes: no Spark job takes as short."""
    version = table_version(spark, path)
    old = files_of(spark, path) if version >= 0 else []
    others = rows_of_others(OutputDirectory(path), old, keys)
    files = written_rows(
        TableOutput(path, ingest_run=0), PARTITIONS, [*others, partition_rows(sources)]
    )
    changes, rows_of = FileChanges(old, files), any_of(keys)
    commit_files(spark, job, PARTITIONS, changes, version=version, replaced_rows=rows_of)
