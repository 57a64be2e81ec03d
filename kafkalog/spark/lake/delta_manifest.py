"""What each run of the ingest read, from its commit. Rules: docs/ingest.md F530 and F535."""

from __future__ import annotations

import time

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from kafkalog.errors import StatePositionError
from kafkalog.lake.delta.delta_layout import why_not_by_tasks
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.manifest_rows import TABLE as MANIFEST
from kafkalog.lake.manifest_rows import manifest_rows
from kafkalog.lake.table_writer import TableWriter
from kafkalog.spark.delta_commit import (
    append_files,
    delta_tables,
    last_version,
    no_files_in_checksum,
    table_detail,
)
from kafkalog.spark.tables import spark_schema, with_table_schema
from kafkalog.views.planning.ingest_positions import WRITER, IngestPositions


class DeltaManifest:
    """Table `ingest_manifest` in Delta's format, which the tables of some topics may share."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self.path = path
        # Whether it was created here, and so has rows of none but these runs.
        self._is_new = False

    def write(self, positions: IngestPositions, table: str) -> None:
        """Replace what the manifest has of a run of the table with this name."""
        if not positions.ranges:
            return
        rows = manifest_rows(positions, time.time_ns() // 1_000_000)
        if not self._added(rows, positions.run, table):
            self._replace(pa.Table.from_batches([rows]), positions, table)

    def has(self, positions: IngestPositions, table: str) -> bool:
        """Return whether the manifest has rows of the run with these positions, of the table with
        this name."""
        if not self._exists():
            return False
        if self._last_run(table) == positions.run:
            return True
        return not self._frame().where(_is_of(positions)).isEmpty()

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

    def _added(self, rows: pa.RecordBatch, run: int, table: str) -> bool:
        """Add the rows of a run by a transaction, and return whether that was possible: not if
        there may be rows of the run already, and not with Spark Connect."""
        if is_remote():
            return False
        file = TableWriter(TableOutput(self.path, run))
        try:
            new_schema = None if self._exists() else spark_schema(MANIFEST).json()
            if new_schema is None:
                is_known = self._is_new or (self._last_run(table) or 0) > 0
                own = table_detail(delta_tables().forPath(self._spark, self.path))
                if not is_known or why_not_by_tasks(own.properties):
                    return False
            file.write(rows, (MANIFEST, 0))
            with no_files_in_checksum(self._spark):
                append_files(
                    self._spark,
                    self.path,
                    file.close(),
                    writer=_writer(table),
                    version=run,
                    new_schema=new_schema,
                )
            self._is_new = self._is_new or new_schema is not None
        except (AnalysisException, StatePositionError):
            # The log of a killed run has no commit, or the table's last run is not an earlier one.
            file.abort()
            return False
        return True

    def _replace(self, rows: pa.Table, positions: IngestPositions, table: str) -> None:
        """Write the rows of a run by Spark's writer, which takes longer, in place of those that are
        there."""
        frame = self._spark.createDataFrame(rows, spark_schema(MANIFEST))
        writer = with_table_schema(frame, MANIFEST).write.format("delta").mode("overwrite")
        # Delta would pass over a number that is not higher.
        last = self._last_run(table)
        if last is not None and last < positions.run:
            writer = writer.option("txnAppId", _writer(table)).option("txnVersion", positions.run)
        writer.option("replaceWhere", _is_of(positions)).save(self.path)

    def _last_run(self, table: str) -> int | None:
        """Return the last run of a table that the log has, -1 without any; None with Spark Connect,
        which does not say."""
        return None if is_remote() else last_version(self._spark, self.path, _writer(table))

    def _exists(self) -> bool:
        return delta_tables().isDeltaTable(self._spark, self.path)

    def _frame(self) -> DataFrame:
        return self._spark.read.format("delta").load(self.path)


def _writer(table: str) -> str:
    """Return the name under which the manifest's log has the last run of a table."""
    return f"{WRITER} {table}"


def _is_of(positions: IngestPositions) -> str:
    """Return the condition that a row is of the run with these positions."""
    # Topics have no character that SQL would take for its own.
    topics = ", ".join(f"'{each}'" for each in sorted({each.topic for each in positions.ranges}))
    return f"ingest_run = {positions.run} AND topic IN ({topics})"
