"""The partitions that a job reads, and their records, as DataFrames."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.state.partition_rows import PARTITIONS, partition_rows
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.tables import spark_schema
from kafkalog.views.planning.state_sources import PlannedOffsets, range_options
from kafkalog.views.planning.table_positions import StateSource


def state_records(
    spark: SparkSession,
    job: JobSettings,
    isolation_level: str,
    planned: PlannedOffsets,
    sources: Sequence[StateSource],
    columns: Sequence[str],
) -> DataFrame:
    """Read columns of view `records` for the offsets to read, which may be none, of the best
    replicas, or of others where sources say so (F1294)."""
    others = {
        source.key: source.log.path
        for source in sources
        if source.log is not None and source.best_path is not None and source.key in planned.starts
    }
    reads = [
        (job.paths, planned.starts.keys() - others.keys()),
        ([*others.values()], others.keys()),
    ]

    def read(paths: Sequence[str], keys: Collection[TopicPartition]) -> DataFrame:
        reader = spark.read.format("kafkalog").option("columns", ",".join(columns))
        reader = reader.option("isolationLevel", isolation_level).option("mode", job.mode)
        return reader.options(**range_options(planned, keys)).load(list(paths))

    frames = [read(paths, keys) for paths, keys in reads if keys]
    if not frames:
        return spark.createDataFrame([], spark_schema("records")).select(*columns)
    return reduce(DataFrame.unionByName, frames)


def sources_frame(spark: SparkSession, sources: Sequence[StateSource]) -> DataFrame:
    """Return a row for each source: schemas/tables/state_partitions.json."""
    rows = pa.Table.from_batches([partition_rows(sources)])
    return spark.createDataFrame(rows, spark_schema(PARTITIONS))
