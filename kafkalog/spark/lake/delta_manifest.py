"""What each run of the ingest read, from its commit. Rules: docs/ingest.md F530 and F535."""

from __future__ import annotations

import time

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafkalog.lake.manifest_rows import TABLE as MANIFEST
from kafkalog.lake.manifest_rows import manifest_rows
from kafkalog.spark.tables import spark_schema, with_table_schema
from kafkalog.views.planning.ingest_positions import IngestPositions


class DeltaManifest:
    """Table `ingest_manifest` in Delta's format, which the tables of some topics may share."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self.path = path

    def write(self, positions: IngestPositions) -> None:
        """Replace what the manifest has of a run."""
        if not positions.ranges:
            return
        rows = pa.Table.from_batches([manifest_rows(positions, time.time_ns() // 1_000_000)])
        frame = self._spark.createDataFrame(rows, spark_schema(MANIFEST))
        writer = with_table_schema(frame, MANIFEST).write.format("delta").mode("overwrite")
        writer.option("replaceWhere", _is_of(positions)).save(self.path)

    def has(self, positions: IngestPositions) -> bool:
        """Return whether the manifest has rows of the run with these positions."""
        return self._exists() and not self._frame().where(_is_of(positions)).isEmpty()

    def newest_ranges(self) -> list[Row]:
        """Return the end of each partition, and what is known of it; none without a manifest."""
        if not self._exists():
            return []
        newest = (
            self._frame()
            .groupBy("topic", "partition")
            .agg(
                F.max("until_offset").alias("end"),
                *(
                    F.max_by(name, "ingest_run").alias(name)
                    for name in ("isolation_level", "cluster_id", "topic_id")
                ),
                F.max("ingest_run").alias("run"),
            )
        )
        return newest.collect()

    def _exists(self) -> bool:
        return DeltaTable.isDeltaTable(self._spark, self.path)

    def _frame(self) -> DataFrame:
        return self._spark.read.format("delta").load(self.path)


def _is_of(positions: IngestPositions) -> str:
    """Return the condition that a row is of the run with these positions."""
    # Topics have no character that SQL would take for its own.
    topics = ", ".join(f"'{each}'" for each in sorted({each.topic for each in positions.ranges}))
    return f"ingest_run = {positions.run} AND topic IN ({topics})"
