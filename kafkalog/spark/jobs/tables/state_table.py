"""The latest record of each key, from view `records`; the Delta table of this state, in which one
commit writes rows and the positions up to which they are read; and table `state_partitions`.

Rules: docs/format.md F270 to F280; reasons: docs/decisions/0007.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.state.partition_rows import PARTITIONS, partition_rows, rows_of_others
from kafkalog.lake.state.state_rows import STATE
from kafkalog.lake.table_writer import written_rows
from kafkalog.lake.written_file import WrittenFile
from kafkalog.questions.state import StateTotals, written_totals
from kafkalog.schemas import table_fields
from kafkalog.spark.delta_commit import (
    FileChanges,
    commit_text,
    delta_tables,
    files_of,
    row_count,
    table_version,
)
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.jobs.tables.source_frames import sources_frame
from kafkalog.spark.jobs.tables.written_tables import (
    commit_files,
    refuse_other_format,
    replace_rows,
    why_not_by_files,
)
from kafkalog.spark.lake.delta_history import History, any_of, newest_positions
from kafkalog.spark.tables import read_table, with_table_schema, write_derived
from kafkalog.views.engine import RowsInMemory
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
KEYLESS = "keyless_records"
_KEY = ("topic", "partition", "key")


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


def latest_by_key(records: DataFrame) -> DataFrame:
    """Return the record with the highest offset of each key, tombstones included; null is not a
    key.

    `records` are of view `records`, and so are the columns of the result.
    """
    rest = [name for name in records.columns if name not in _KEY]
    latest = F.max_by(F.struct(*rest), "offset").alias("latest")
    found = records.where(F.col("key").isNotNull()).groupBy(*_KEY).agg(latest)
    return found.select(*_KEY, "latest.*")


def with_keyless_counted(records: DataFrame, observation: Observation) -> DataFrame:
    """Return the records; once they are read, the observation has as KEYLESS how many of them have
    no key and are in no state."""
    return records.observe(observation, F.count_if(F.col("key").isNull()).alias(KEYLESS))


def state(latest: DataFrame, sources: DataFrame) -> DataFrame:
    """Return rows of schemas/tables/state.json, deletes among them: `sources` has a row for each
    topic and partition, with the cluster and the path that it is from."""
    places = F.broadcast(sources.select("topic", "partition", "cluster_id", "input_path"))
    types = F.element_at(
        F.create_map(F.lit(0), F.lit("CreateTime"), F.lit(1), F.lit("LogAppendTime")),
        F.col("timestampType"),
    )
    rows = latest.join(places, ["topic", "partition"]).withColumns(
        {
            "broker_id": F.col("brokerId"),
            "timestamp_ms": F.nullif(F.col("timestampMs"), F.lit(-1)),
            "timestamp_type": types,
            "is_deleted": F.col("value").isNull(),
        }
    )
    return rows.select(*(field["name"] for field in table_fields("state")))


def state_totals(rows: DataFrame) -> DataFrame:
    """Return one row that sums a state up, for the verdict on the terminal."""
    return rows.agg(
        F.count_if(~F.col("is_deleted")).alias("keys"), F.count_if("is_deleted").alias("deletes")
    )


def in_partitions(rows: DataFrame, sources: DataFrame) -> DataFrame:
    """Return the rows of the topics and partitions that `sources` has."""
    kept = rows.join(F.broadcast(sources), ["topic", "partition"], "left_semi")
    # A join by names puts these first.
    return kept.select(rows.columns)


def newest(rows: DataFrame) -> DataFrame:
    """Return the rows that changed last in each partition first, to be shown: keys and values as
    text, or what they were decoded to."""
    known = {field["name"] for field in table_fields("state")}
    decoded = [name for name in rows.columns if name not in known]
    texts = [name for name in ("key", "value") if f"{name}_decoded" not in decoded]
    ordered = rows.orderBy(F.desc("offset"), "topic", "partition")
    ordered = ordered.withColumns({name: F.col(name).cast("string") for name in texts})
    shown = ("topic", "partition", *texts, "offset", "timestamp", "is_deleted", *decoded)
    return ordered.select(*shown)


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
    elif why_not_by_files(spark, job, PARTITIONS, is_whole=False) is None:
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
