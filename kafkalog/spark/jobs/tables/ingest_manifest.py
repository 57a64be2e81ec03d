"""What each run of the ingest read, from its commit. Rules: docs/ingest.md F530 and F535."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafkalog.schemas import table_fields
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.tables import read_table, spark_schema, with_table_schema
from kafkalog.views.planning.ingest_positions import IngestPositions, IngestRange, IngestRun

RECORDS, MANIFEST = "ingested_records", "ingest_manifest"


def ranges_frame(
    spark: SparkSession, ranges: Iterable[IngestRange], positions: IngestPositions
) -> DataFrame:
    """Return a row for each range: schemas/tables/ingest_manifest.json, without rows."""
    schema = StructType([field for field in spark_schema(MANIFEST) if field.name != "rows"])
    of_run = {
        "ingest_run": positions.run,
        "isolation_level": positions.isolation_level,
        "written_at": datetime.now(UTC),
    }
    rows = [
        tuple(of_run[name] if name in of_run else getattr(each, name) for name in schema.names)
        for each in ranges
    ]
    return spark.createDataFrame(rows, schema)


def write_manifest(spark: SparkSession, output: str, positions: IngestPositions) -> str:
    """Replace what the manifest has of a run; return the table's path."""
    ranges = ranges_frame(spark, positions.ranges, positions)
    records = read_table(spark, output, RECORDS, "delta")
    rows = _counted(ranges, records.where(F.col("ingest_run") == positions.run))
    path = os.path.join(output, MANIFEST)
    writer = with_table_schema(rows, MANIFEST).write.format("delta").mode("overwrite")
    writer.option("replaceWhere", f"ingest_run = {positions.run}").save(path)
    return path


def _counted(ranges: DataFrame, records: DataFrame) -> DataFrame:
    """Return the ranges with the number of rows of each; `records` are those of their run."""
    counts = records.groupBy("topic", "partition").agg(F.count("*").alias("rows"))
    rows = ranges.join(F.broadcast(counts), ["topic", "partition"], "left")
    rows = rows.withColumn("rows", F.coalesce("rows", F.lit(0)))
    return rows.select(*(field["name"] for field in table_fields(MANIFEST)))


def show_run(spark: SparkSession, job: JobSettings, run: IngestRun) -> None:
    """Show what the run wrote of each topic, unless `--show 0` is given."""
    if job.show:
        _by_topic(_manifest_of(spark, job.output_dir, run.positions.run)).show(job.show)


def _manifest_of(spark: SparkSession, output: str, run: int) -> DataFrame:
    return read_table(spark, output, MANIFEST, "delta").where(F.col("ingest_run") == run)


def has_manifest(spark: SparkSession, output: str, run: int) -> bool:
    """Return whether the manifest has rows of a run."""
    is_there = DeltaTable.isDeltaTable(spark, os.path.join(output, MANIFEST))
    return is_there and not _manifest_of(spark, output, run).isEmpty()


def _by_topic(rows: DataFrame) -> DataFrame:
    """Return what a run wrote of each topic, for display."""
    found = rows.groupBy("topic").agg(
        F.count("*").alias("partitions"),
        F.sum("rows").alias("rows"),
        F.sum(F.col("until_offset") - F.col("from_offset")).alias("offsets"),
        F.count("finding").alias("findings"),
    )
    return found.orderBy(F.desc("rows"), "topic")
