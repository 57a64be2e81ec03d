"""The table of records in Delta's format: one commit has rows and the offsets that they cover.

Rules: docs/ingest.md F530 to F535; reasons: docs/decisions/0014 and 0027.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType
from pyspark.sql.utils import is_remote

from kafkalog.errors import StatePositionError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.decoded_columns import (
    DECODED_COLUMNS,
    NO_COLUMNS,
    DecodedColumns,
    merged_columns,
)
from kafkalog.lake.decoding.decoding_requests import COLUMNS
from kafkalog.lake.delta.delta_commits import written_meanwhile
from kafkalog.lake.delta.delta_layout import fitting_layout, records_schema, why_not_by_tasks
from kafkalog.lake.layout import RECORDS, PartitionBy, TableLayout, TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.written_file import WrittenFile
from kafkalog.spark.delta_commit import (
    append_files,
    commit_text,
    delta_tables,
    newest_commits,
    no_files_in_checksum,
    table_detail,
)
from kafkalog.spark.lake.delta_history import History, any_of, last_written, newest_positions
from kafkalog.spark.lake.delta_manifest import DeltaManifest
from kafkalog.spark.tables import quoted, spark_schema
from kafkalog.views.planning.ingest_positions import WRITER, IngestPositions, IngestRun, Replaces

if TYPE_CHECKING:
    from delta.tables import DeltaTable

# A run's files hold few partitions and a stretch of offsets each; OPTIMIZE keeps it so.
_CLUSTERED_BY = ("topic", "partition", "offset")
# Commits among which a run looks for its own.
_LATEST = 20
_COMMENT = "comment"
_ERRORS = {column: f"{column}_error" for column in COLUMNS}
# The property of tables whose columns can become wider.
_TYPE_WIDENING = "delta.enableTypeWidening"
_TIME_VALUES = {
    PartitionBy.DAY: F.to_date,
    PartitionBy.HOUR: lambda name: F.date_format(name, "yyyy-MM-dd-HH"),
}


class DeltaTarget:
    """A Delta table of records, at a path or with a name in a catalog."""

    def __init__(
        self,
        spark: SparkSession,
        place: str,
        manifest: DeltaManifest,
        layout: TableLayout,
        *,
        is_name: bool = False,
    ) -> None:
        """`place` is the table's path, or its name with `is_name`."""
        self._spark = spark
        self._place = place
        self._is_name = is_name
        self._manifest = manifest
        self._layout = layout
        self._decoded: list[StructField] = []

    @property
    def place(self) -> str:
        """The table's path or name."""
        return self._place

    def recorded(self) -> IngestPositions | None:
        """Return what the table holds, None without a table.

        Writes the manifest of a run that was killed before it did. Raises StatePositionError where
        neither the table's commits nor the manifest say what it holds.
        """
        if not self._exists():
            return None
        positions, history = newest_positions(self._table(), IngestPositions.from_json)
        if positions is None:
            return self._in_manifest(history)
        # Numbers of runs are never used again, not even after a RESTORE: the guard goes by them.
        last = last_written(history, IngestPositions.from_json) or positions
        recorded = replace(positions, run=max(positions.run, last.run))
        if recorded.ranges and not self._manifest.has(recorded, self._name):
            self._manifest.write(self._counted(recorded), self._name)
        return recorded

    def prepare(self, run: IngestRun, decoded: DecodedColumns = NO_COLUMNS) -> TableOutput:
        """Create the table if it does not exist, and return where tasks write for this run."""
        self._decoded = [StructField.fromJson(dict(field)) for field in decoded.fields]
        self._create(run.positions)
        self._layout = self._fitting_layout(decoded)
        # Spark gives local paths as URIs, tasks need plain paths.
        return TableOutput(
            OutputDirectory(self._path()).path,
            run.positions.run,
            self._layout,
            decoded=tuple(each.jsonValue() for each in self._decoded),
        )

    def why_by_spark(self, run: IngestRun) -> str | None:
        """Return why Spark's writer has to write the rows of a run, None where tasks can."""
        if is_remote():
            return "Spark Connect gives no access to Delta's transactions"
        if run.replaces is not Replaces.NOTHING:
            return "the run replaces rows"
        return why_not_by_tasks(table_detail(self._table()).properties)

    def commit(self, files: Sequence[WrittenFile], run: IngestRun) -> None:
        """Make the files and the positions part of the table; then report the run.

        Raises StatePositionError where another run has written since `recorded`: then the table is
        unchanged.
        """
        append_files(
            self._spark,
            self._path(),
            files,
            writer=WRITER,
            version=run.positions.run,
            user_metadata=run.positions.to_json(),
        )
        self._manifest.write(run.positions, self._name)

    def write(self, rows: DataFrame, run: IngestRun) -> IngestRun:
        """Write rows by Spark's writer, in one commit with the positions, in place of those that
        the run replaces; then report the run. Return the run with the number of rows of each range.

        Raises StatePositionError as `commit` does.
        """
        writer = self._with_time_columns(rows.to(self._records())).write.format("delta")
        writer = writer.option("userMetadata", run.positions.to_json())
        # Two runs that begin with the same positions have the same number, and one of them wins.
        writer = writer.option("txnAppId", WRITER).option("txnVersion", run.positions.run)
        if run.replaces is Replaces.NOTHING:
            writer.mode("append").save(self._path())
        else:
            writer.mode("overwrite").option("replaceWhere", _replaced(run)).save(self._path())
        if not self._is_written(run.positions):
            raise written_meanwhile(self._place)
        counts = self._counts(run.positions)
        written = run.with_rows(_rows_of(counts), _undecoded(counts))
        self._manifest.write(written.positions, self._name)
        return written

    def discard(self, files: Sequence[WrittenFile]) -> None:
        """Remove files that no commit will name."""
        directory = OutputDirectory(self._path())
        for file in files:
            directory.delete(file.path)

    def _exists(self) -> bool:
        if self._is_name:
            return self._spark.catalog.tableExists(self._place)
        return delta_tables().isDeltaTable(self._spark, self._place)

    @property
    def _name(self) -> str:
        return os.path.basename(self._place)

    def _table(self) -> DeltaTable:
        open_table = delta_tables().forName if self._is_name else delta_tables().forPath
        return open_table(self._spark, self._place)

    def _frame(self) -> DataFrame:
        return self._table().toDF()

    def _path(self) -> str:
        return str(table_detail(self._table()).location) if self._is_name else self._place

    def _in_manifest(self, history: History) -> IngestPositions:
        """Return the positions from the manifest, where Delta has removed the commits that had
        them."""
        rows = [] if history.was_restored else self._manifest.newest_ranges()
        if not rows:
            raise StatePositionError(
                f"{self._place}: no commit has the offsets that the table holds; begin with "
                "another --output-dir"
            )
        # Of a run that was killed before it wrote its manifest.
        ends = {(row.topic, row.partition): row.end for row in rows}
        by_partition = self._frame().groupBy("topic", "partition")
        for row in by_partition.agg((F.max("offset") + 1).alias("end")).collect():
            key = row.topic, row.partition
            ends[key] = max(row.end, ends.get(key, 0))
        return IngestPositions(
            isolation_level=rows[0].isolation_level,
            run=max(row.run for row in rows) + 1,
            cluster_id=next((row.cluster_id for row in rows if row.cluster_id), None),
            next_offsets=ends,
            topic_ids={row.topic: row.topic_id for row in rows if row.topic_id},
        )

    def _counted(self, positions: IngestPositions) -> IngestPositions:
        """Return the positions with the number of rows of each range of their run, counted in the
        table where its commit does not have it."""
        if all(each.rows is not None for each in positions.ranges):
            return positions
        counts = _rows_of(self._counts(positions))
        ranges = tuple(replace(each, rows=counts.get(each.key, 0)) for each in positions.ranges)
        return replace(positions, ranges=ranges)

    def _counts(self, positions: IngestPositions) -> list[Row]:
        """Return what a run has written of each topic and partition: its rows, and the errors."""
        own = self._frame().where(F.col("ingest_run") == positions.run)
        errors = [F.count(name).alias(name) for name in _ERRORS.values() if name in own.columns]
        counted = own.groupBy("topic", "partition").agg(F.count("*").alias("rows"), *errors)
        return counted.collect()

    def _is_written(self, positions: IngestPositions) -> bool:
        """Return whether the positions are in a commit: Delta skips what it takes for a
        repetition."""
        commits = newest_commits(self._table(), _LATEST)
        found = (IngestPositions.from_json(commit.userMetadata) for commit in commits)
        return any(each is not None and each.token == positions.token for each in found)

    def _create(self, positions: IngestPositions) -> None:
        """Create the table if it does not exist, with positions that say it holds nothing."""
        if self._exists():
            return
        text = IngestPositions(positions.isolation_level).to_json()
        with no_files_in_checksum(self._spark), commit_text(self._spark, text):
            if self._is_name:
                self._create_by_name()
            else:
                self._create_at_path()

    def _create_by_name(self) -> None:
        # Delta's builder takes no name with a catalog, and Spark's writer does not cluster.
        columns = ", ".join(
            f"`{each.name}` {each.dataType.simpleString()} "
            f"COMMENT {quoted(each.metadata[_COMMENT])}"
            for each in self._schema(self._layout)
        )
        partition_by = self._partition_columns()
        clause = "PARTITIONED BY" if partition_by else "CLUSTER BY"
        names = ", ".join(partition_by or _CLUSTERED_BY)
        sql = f"CREATE TABLE {self._place} ({columns}) USING delta {clause} ({names})"
        self._spark.sql(sql)

    def _create_at_path(self) -> None:
        table = delta_tables().createIfNotExists(self._spark).addColumns(self._schema(self._layout))
        partition_by = self._partition_columns()
        if partition_by:
            table = table.partitionedBy(*partition_by)
        else:
            table = table.clusterBy(*_CLUSTERED_BY)
        try:
            table.location(self._place).execute()
        except AnalysisException as error:
            if error.getCondition() != "DELTA_TABLE_NOT_FOUND":
                raise
            self._create_over_log()

    def _create_over_log(self) -> None:
        """Make a table of a log without a commit, of a run that was killed."""
        writer = self._spark.createDataFrame([], self._schema(self._layout)).write.format("delta")
        partition_by = self._partition_columns()
        writer.partitionBy(*partition_by).save(self._place)
        if not partition_by:
            place, columns = self._place.replace("`", "``"), ", ".join(_CLUSTERED_BY)
            self._spark.sql(f"ALTER TABLE delta.`{place}` CLUSTER BY ({columns})")

    def _records(self) -> StructType:
        return StructType([*spark_schema(RECORDS), *self._decoded])

    def _schema(self, layout: TableLayout) -> StructType:
        decoded = [each.jsonValue() for each in self._decoded]
        return StructType.fromJson(records_schema(decoded, layout))

    def _partition_columns(self) -> list[str]:
        return [each.value for each in self._layout.partition_by]

    def _with_time_columns(self, rows: DataFrame) -> DataFrame:
        times = [by for by in self._layout.partition_by if by in _TIME_VALUES]
        return rows.withColumns({by.value: _TIME_VALUES[by]("timestamp") for by in times})

    def _fitting_layout(self, decoded: DecodedColumns) -> TableLayout:
        """Return how tasks write for the table, which keeps its partitioning and gets the decoded
        columns that it lacks.

        Raises OptionError for another one than the table's, SchemaError for another table.
        """
        detail, schema = table_detail(self._table()), self._frame().schema
        types = {each.name: each.dataType for each in schema}
        self._merge_decoded(decoded, schema, detail.properties)
        fields = [each.jsonValue() for each in schema]
        layout = fitting_layout(self._place, self._layout, detail.partitionColumns, fields)
        if any(types.get(each.name) != each.dataType for each in self._decoded):
            self._add_columns(layout)
        return layout

    def _merge_decoded(
        self, decoded: DecodedColumns, schema: StructType, properties: Mapping[str, str]
    ) -> None:
        of_table = [each.jsonValue() for each in schema if each.name in DECODED_COLUMNS]
        can_widen = properties.get(_TYPE_WIDENING) == "true"
        merged = merged_columns(self._place, of_table, decoded, can_widen=can_widen)
        self._decoded = [StructField.fromJson(dict(each)) for each in merged]

    def _add_columns(self, layout: TableLayout) -> None:
        """Give the table the decoded columns and fields that it lacks: a commit without rows."""
        rows = self._spark.createDataFrame([], self._schema(layout))
        writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
        writer.save(self._path())


def _rows_of(counts: Sequence[Row]) -> dict[TopicPartition, int]:
    return {(row.topic, row.partition): row.rows for row in counts}


def _undecoded(counts: Sequence[Row]) -> Mapping[str, int]:
    errors = {
        name: sum(row.asDict().get(error, 0) for row in counts) for name, error in _ERRORS.items()
    }
    return {name: count for name, count in errors.items() if count}


def _replaced(run: IngestRun) -> str:
    if run.replaces is Replaces.PARTITIONS:
        return any_of(run.replaced)
    return " OR ".join(
        f"(topic = '{each.topic}' AND partition = {each.partition} "
        f"AND offset >= {each.from_offset} AND offset < {each.until_offset})"
        for each in run.written
    )
