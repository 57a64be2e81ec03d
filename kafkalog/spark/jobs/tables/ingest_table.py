"""The Delta table of records: one commit writes rows and the offsets that they cover.

Rules: docs/ingest.md F530 to F535; reasons: docs/decisions/0014.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import replace

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafkalog.errors import StatePositionError
from kafkalog.spark.delta_history import (
    History,
    any_of,
    last_written,
    newest_positions,
    user_metadata,
)
from kafkalog.spark.jobs.tables.ingest_manifest import (
    MANIFEST,
    RECORDS,
    has_manifest,
    write_manifest,
)
from kafkalog.spark.jobs.tables.ingest_request import IngestRequest
from kafkalog.spark.tables import read_table, spark_schema, with_table_schema
from kafkalog.views.planning.ingest_positions import (
    WRITER,
    IngestPositions,
    IngestRun,
    Replaces,
    ingest_positions_from_json,
    ingest_run,
)
from kafkalog.views.planning.state_positions import StateSource

# A run's files hold few partitions and a stretch of offsets each; OPTIMIZE keeps it so.
_CLUSTERED_BY = ("topic", "partition", "offset")
# Commits among which a run looks for its own.
_LATEST = 20


def planned_ingest_run(
    spark: SparkSession, output_dir: str, request: IngestRequest, sources: Sequence[StateSource]
) -> IngestRun:
    """Return what the job has to read; first write the manifest of a run that was killed.

    Raises StatePositionError and OptionError where the sources do not fit the table.
    """
    recorded = recorded_ingest_positions(spark, output_dir) or IngestPositions(
        request.isolation_level
    )
    if recorded.isolation_level != request.isolation_level:
        raise StatePositionError(
            f"the table was written with --isolation-level {recorded.isolation_level}, and this "
            f"run has {request.isolation_level}: give the same, or another --output-dir"
        )
    if recorded.ranges and not has_manifest(spark, output_dir, recorded.run):
        write_manifest(spark, output_dir, recorded)
    return ingest_run(
        recorded,
        sources,
        is_bounded=request.is_bounded,
        full_refresh=request.full_refresh,
        token=uuid.uuid4().hex,
    )


def recorded_ingest_positions(spark: SparkSession, output: str) -> IngestPositions | None:
    """Return what the table holds, None without a table. Raises StatePositionError where neither
    its commits nor the manifest have it."""
    path = os.path.join(output, RECORDS)
    if not DeltaTable.isDeltaTable(spark, path):
        return None
    table = DeltaTable.forPath(spark, path)
    positions, history = newest_positions(table, ingest_positions_from_json)
    if positions is None:
        return _in_manifest(spark, output, history)
    # Numbers of runs are never used again, not even after a RESTORE: Delta's guard goes by them.
    last = last_written(history, ingest_positions_from_json) or positions
    return replace(positions, run=max(positions.run, last.run))


def _in_manifest(spark: SparkSession, output: str, history: History) -> IngestPositions:
    """Return the positions from the manifest, where Delta has removed the commits that had them."""
    has_table = DeltaTable.isDeltaTable(spark, os.path.join(output, MANIFEST))
    rows = [] if history.was_restored or not has_table else _newest_ranges(spark, output)
    if not rows:
        raise StatePositionError(
            f"{os.path.join(output, RECORDS)}: no commit has the offsets that the table holds; "
            "begin with another --output-dir"
        )
    table = read_table(spark, output, RECORDS, "delta").groupBy("topic", "partition")
    # Of a run that was killed before it wrote its manifest.
    ends = {(row.topic, row.partition): row.end for row in rows}
    for row in table.agg((F.max("offset") + 1).alias("end")).collect():
        key = row.topic, row.partition
        ends[key] = max(row.end, ends.get(key, 0))
    return IngestPositions(
        isolation_level=rows[0].isolation_level,
        run=max(row.run for row in rows) + 1,
        cluster_id=next((row.cluster_id for row in rows if row.cluster_id), None),
        next_offsets=ends,
        topic_ids={row.topic: row.topic_id for row in rows if row.topic_id},
    )


def _newest_ranges(spark: SparkSession, output: str) -> list[Row]:
    """Return the end of each partition in the manifest, and what is known of it."""
    ranges = read_table(spark, output, MANIFEST, "delta")
    newest = ranges.groupBy("topic", "partition").agg(
        F.max("until_offset").alias("end"),
        *(
            F.max_by(name, "ingest_run").alias(name)
            for name in ("isolation_level", "cluster_id", "topic_id")
        ),
        F.max("ingest_run").alias("run"),
    )
    return newest.collect()


def append_records(rows: DataFrame, output_dir: str, run: IngestRun) -> str:
    """Write the rows and the positions in one commit; return the table's path.

    Raises StatePositionError where another run has written meanwhile: then nothing is written.
    """
    spark, path = rows.sparkSession, os.path.join(output_dir, RECORDS)
    if not run.has_work:
        return path
    writer = with_table_schema(rows, RECORDS).write.format("delta")
    writer = writer.option("userMetadata", run.positions.to_json())
    # Two runs that begin with the same positions have the same number, and one of them wins.
    writer = writer.option("txnAppId", WRITER).option("txnVersion", run.positions.run)
    _create(spark, path, run.positions)
    if run.replaces is Replaces.NOTHING:
        writer.mode("append").save(path)
    else:
        writer.mode("overwrite").option("replaceWhere", _replaced(run)).save(path)
    if not _is_written(spark, path, run.positions):
        raise StatePositionError(
            f"{path}: another run has written meanwhile, this one has written nothing: run it again"
        )
    return path


def _is_written(spark: SparkSession, path: str, positions: IngestPositions) -> bool:
    """Return whether the positions are in a commit: Delta skips what it takes for a repetition."""
    commits = DeltaTable.forPath(spark, path).history(_LATEST).collect()
    found = (ingest_positions_from_json(commit.userMetadata) for commit in commits)
    return any(each is not None and each.token == positions.token for each in found)


def _create(spark: SparkSession, path: str, positions: IngestPositions) -> None:
    """Create the table if it does not exist, with positions that say it holds nothing."""
    if DeltaTable.isDeltaTable(spark, path):
        return
    table = DeltaTable.createIfNotExists(spark).location(path).addColumns(spark_schema(RECORDS))
    with user_metadata(spark, IngestPositions(positions.isolation_level).to_json()):
        try:
            table.clusterBy(*_CLUSTERED_BY).execute()
        except AnalysisException as error:
            if error.getCondition() != "DELTA_TABLE_NOT_FOUND":
                raise
            # A log without a commit, of a run that was killed: this makes no table of it.
            spark.createDataFrame([], spark_schema(RECORDS)).write.format("delta").save(path)
            place, columns = path.replace("`", "``"), ", ".join(_CLUSTERED_BY)
            spark.sql(f"ALTER TABLE delta.`{place}` CLUSTER BY ({columns})")


def _replaced(run: IngestRun) -> str:
    if run.replaces is Replaces.PARTITIONS:
        return any_of(run.replaced)
    return " OR ".join(
        f"(topic = '{each.topic}' AND partition = {each.partition} "
        f"AND offset >= {each.from_offset} AND offset < {each.until_offset})"
        for each in run.written
    )
