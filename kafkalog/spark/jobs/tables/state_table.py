"""The Delta table of state: one commit writes rows and the positions up to which they are read.

Rules: docs/format.md F276 to F280; reasons: docs/decisions/0007.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.state.partition_rows import PARTITIONS
from kafkalog.lake.state.state_rows import STATE
from kafkalog.lake.written_file import WrittenFile
from kafkalog.questions.state import StateTotals, written_totals
from kafkalog.spark.delta_commit import commit_text, delta_tables, row_count
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.jobs.tables.state_frames import state_totals
from kafkalog.spark.jobs.tables.written_tables import refuse_other_format, replace_rows
from kafkalog.spark.lake.delta_history import History, any_of, newest_positions
from kafkalog.spark.tables import read_table, with_table_schema, write_derived
from kafkalog.views.options.state_options import StateRequest
from kafkalog.views.planning.state_positions import (
    StatePositions,
    StateRun,
    StateSettings,
    full_run,
    incremental_run,
)
from kafkalog.views.planning.table_positions import StateSource

_DECODED = "state_decoded"


def planned_state_run(
    spark: SparkSession, job: JobSettings, request: StateRequest, sources: Sequence[StateSource]
) -> StateRun:
    """Return what the job has to read for a table that may exist. Raises StatePositionError.

    Only Delta tables keep positions; others are rewritten.
    """
    settings = StateSettings(request.isolation_level, request.keep_tombstones)
    refuse_other_format(job, STATE, PARTITIONS, _DECODED)
    recorded = recorded_state_positions(spark, job.output_dir, settings) if job.is_delta else None
    if recorded is None or request.full_refresh:
        return full_run(recorded, settings, sources)
    return incremental_run(recorded, settings, sources)


def recorded_state_positions(
    spark: SparkSession, output: str, settings: StateSettings
) -> StatePositions | None:
    """Return what the table holds, None without a table."""
    path = os.path.join(output, STATE)
    if not delta_tables().isDeltaTable(spark, path):
        return None
    table = delta_tables().forPath(spark, path)
    positions, history = newest_positions(table, StatePositions.from_json)
    return positions or _in_tables(spark, output, settings, history)


def _in_tables(
    spark: SparkSession, output: str, settings: StateSettings, history: History
) -> StatePositions:
    """Return positions derived from the rows, where the history has no commit with positions.

    They are not above those that were reached. What is read again changes nothing: of what lies
    above the highest offset everything was deleted, and the deletes are read again, unless an
    older copy of the log is given. Table `state_partitions`, which is written after `state`, keeps
    that out; it does not know of a RESTORE.
    """
    state = read_table(spark, output, STATE, "delta")
    by_partition = state.groupBy("topic", "partition")
    rows = by_partition.agg(F.max("offset") + 1, F.max("cluster_id")).collect()
    reached = {(topic, partition): end for topic, partition, end, _ in rows}
    partitions = os.path.join(output, PARTITIONS)
    topic_ids = {}
    if not history.was_restored and delta_tables().isDeltaTable(spark, partitions):
        known = read_table(spark, output, PARTITIONS, "delta")
        for row in known.select("topic", "partition", "next_offset", "topic_id").collect():
            key = row.topic, row.partition
            reached[key] = max(row.next_offset, reached.get(key, row.next_offset))
            if row.topic_id:
                topic_ids[row.topic] = row.topic_id
    cluster_id = next(filter(None, (row[3] for row in rows)), None)
    return StatePositions(
        *settings, cluster_id=cluster_id, next_offsets=reached, topic_ids=topic_ids
    )


def write_rows(rows: DataFrame, job: JobSettings, inputs: Sequence[str], run: StateRun) -> None:
    """Write the rows, deletes included."""
    kept = rows if run.positions.keep_tombstones else rows.where("NOT is_deleted")
    path = os.path.join(job.output_dir, STATE)
    if not job.is_delta:
        replace_rows(job, STATE, inputs, kept)
    elif run.replaced is not None:
        writer = with_table_schema(kept, STATE).write.format("delta").mode("overwrite")
        writer = writer.option("replaceWhere", any_of(run.replaced))
        writer.option("userMetadata", run.positions.to_json()).save(path)
    elif run.has_work:
        _merge(rows, path, run)


def table_totals(
    spark: SparkSession, job: JobSettings, run: StateRun, files: Sequence[WrittenFile] | None
) -> StateTotals:
    """Return how many rows the table is, after a run of which tasks have written the files, if
    given. Spark counts them where neither the files nor the table's log say so."""
    path = os.path.join(job.output_dir, STATE)
    has_deletes = run.positions.keep_tombstones
    if files is not None and run.is_whole:
        return written_totals(path, files, has_deletes=has_deletes)
    is_in_log = job.is_delta and not has_deletes and not is_remote()
    if is_in_log and (rows := row_count(spark, path)) is not None:
        return StateTotals(rows, 0)
    return StateTotals(*state_totals(read_state(spark, job)).collect()[0])


def read_state(spark: SparkSession, job: JobSettings) -> DataFrame:
    """Return all rows of the table."""
    return read_table(spark, job.output_dir, STATE, job.table_format)


def write_decoded(rows: DataFrame, job: JobSettings) -> str:
    """Write rows of the table with decoded columns as another table; return its path."""
    return write_derived(rows, job.output_dir, _DECODED, job.table_format)


def _merge(rows: DataFrame, path: str, run: StateRun) -> None:
    """Merge the rows: the highest offset of each key wins, rows below a log start are deleted."""
    is_newer = "new.offset > old.offset"
    same_key = "old.topic = new.topic AND old.partition = new.partition AND old.key = new.key"
    table = delta_tables().forPath(rows.sparkSession, path).alias("old")
    merge = table.merge(rows.alias("new"), same_key)
    if run.positions.keep_tombstones:
        merge = merge.whenMatchedUpdateAll(is_newer).whenNotMatchedInsertAll()
    else:
        merge = merge.whenMatchedDelete(f"{is_newer} AND new.is_deleted")
        merge = merge.whenMatchedUpdateAll(is_newer)
        merge = merge.whenNotMatchedInsertAll("NOT new.is_deleted")
    if run.raised_log_starts:
        merge = merge.whenNotMatchedBySourceDelete(_below(run.raised_log_starts))
    with commit_text(rows.sparkSession, run.positions.to_json()):
        merge.execute()


def _below(log_starts: Mapping[TopicPartition, int]) -> str:
    return " OR ".join(
        f"(old.topic = '{topic}' AND old.partition = {partition} AND old.offset < {offset})"
        for (topic, partition), offset in sorted(log_starts.items())
    )
