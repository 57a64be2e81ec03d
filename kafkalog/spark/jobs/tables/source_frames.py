"""The partitions that a job reads, and their records, as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
    columns: Sequence[str],
) -> DataFrame:
    """Read columns of view `records` for the offsets to read, which may be none."""
    if not planned.starts:
        return spark.createDataFrame([], spark_schema("records")).select(*columns)
    reader = spark.read.format("kafkalog").option("columns", ",".join(columns))
    reader = reader.option("isolationLevel", isolation_level).option("mode", job.mode)
    return reader.options(**range_options(planned)).load(list(job.paths))


def sources_frame(spark: SparkSession, sources: Sequence[StateSource]) -> DataFrame:
    """Return a row for each source: schemas/tables/state_partitions.json."""
    rows = pa.Table.from_batches([partition_rows(sources)])
    return spark.createDataFrame(rows, spark_schema(PARTITIONS))
