"""The Delta table of state: rows and the positions they stand for in one commit.

Rules: docs/format.md F276 to F280; reasons: docs/decisions/0007.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.spark.delta_history import History, any_of, newest_positions, user_metadata
from kafkalog.spark.jobs.tables.state_arguments import state_settings
from kafkalog.spark.tables import read_table, replace_rows, with_table_schema, write_derived
from kafkalog.views.planning.state_positions import (
    StatePositions,
    StateRun,
    StateSettings,
    StateSource,
    full_run,
    incremental_run,
    state_positions_from_json,
)


def planned_state_run(
    spark: SparkSession, args: Namespace, sources: Sequence[StateSource]
) -> StateRun:
    """What the job has to read for a table that may be there already. Raises StatePositionError.

    Only Delta tables keep positions; others are written anew.
    """
    settings = state_settings(args)
    recorded = None
    if args.format == "delta":
        recorded = recorded_state_positions(spark, args.output, settings)
    if recorded is None or args.full_refresh:
        return full_run(recorded, settings, sources)
    return incremental_run(recorded, settings, sources)


def recorded_state_positions(
    spark: SparkSession, output: str, settings: StateSettings
) -> StatePositions | None:
    """What the table holds; None where there is no table."""
    path = os.path.join(output, "state")
    if not DeltaTable.isDeltaTable(spark, path):
        return None
    table = DeltaTable.forPath(spark, path)
    positions, history = newest_positions(table, state_positions_from_json)
    return positions or _in_tables(spark, output, settings, history)


def _in_tables(
    spark: SparkSession, output: str, settings: StateSettings, history: History
) -> StatePositions:
    """Positions by what was written, where the history does not reach back to any.

    They are not above those that were reached. What is read again changes nothing: of what lies
    behind the highest offset all was deleted, and the deletes are read again as well, unless an
    older copy of the log is given. Table `state_partitions`, which is written after `state`, keeps
    that out; it does not know of a RESTORE.
    """
    state = read_table(spark, output, "state", "delta")
    by_partition = state.groupBy("topic", "partition")
    rows = by_partition.agg(F.max("offset") + 1, F.max("cluster_id")).collect()
    reached = {(topic, partition): end for topic, partition, end, _ in rows}
    partitions = os.path.join(output, "state_partitions")
    topic_ids = {}
    if not history.was_restored and DeltaTable.isDeltaTable(spark, partitions):
        told = read_table(spark, output, "state_partitions", "delta")
        for row in told.select("topic", "partition", "next_offset", "topic_id").collect():
            key = row.topic, row.partition
            reached[key] = max(row.next_offset, reached.get(key, row.next_offset))
            if row.topic_id:
                topic_ids[row.topic] = row.topic_id
    cluster_id = next(filter(None, (row[3] for row in rows)), None)
    return StatePositions(settings, cluster_id, reached, topic_ids=topic_ids)


def write_tables(
    rows: DataFrame, partitions: DataFrame, args: Namespace, inputs: Sequence[str], run: StateRun
) -> list[str]:
    """Write the rows, deletes among them, and what there is to say of each partition; the paths."""
    kept = rows if run.positions.settings.keep_tombstones else rows.where("NOT is_deleted")
    if args.format != "delta":
        return [
            replace_rows(kept, args.output, "state", args.format, inputs),
            replace_rows(partitions, args.output, "state_partitions", args.format, inputs),
        ]
    path, places = (os.path.join(args.output, name) for name in ("state", "state_partitions"))
    if run.replaced is not None:
        _replace_partitions(kept, path, "state", run.replaced, run.positions.to_json())
    elif run.has_work:
        _merge(rows, path, run)
    keys = {*run.ends, *(run.replaced or ())}
    _replace_partitions(partitions, places, "state_partitions", keys)
    return [path, places]


def read_state(spark: SparkSession, args: Namespace) -> DataFrame:
    """All rows of the table."""
    return read_table(spark, args.output, "state", args.format)


def write_decoded(rows: DataFrame, args: Namespace) -> str:
    """Write rows of the table with what was decoded, as a table of their own; its path."""
    return write_derived(rows, args.output, "state_decoded", args.format)


def _replace_partitions(
    rows: DataFrame,
    path: str,
    table: str,
    keys: Iterable[TopicPartition],
    user_metadata: str | None = None,
) -> None:
    """Write the rows in place of all that a Delta table has of the partitions."""
    writer = with_table_schema(rows, table).write.format("delta").mode("overwrite")
    writer = writer.option("replaceWhere", any_of(keys))
    if user_metadata is not None:
        writer = writer.option("userMetadata", user_metadata)
    writer.save(path)


def _merge(rows: DataFrame, path: str, run: StateRun) -> None:
    """Of each key the highest offset stays, and nothing below a log start."""
    is_newer = "new.offset > old.offset"
    same_key = "old.topic = new.topic AND old.partition = new.partition AND old.key = new.key"
    table = DeltaTable.forPath(rows.sparkSession, path).alias("old")
    merge = table.merge(rows.alias("new"), same_key)
    if run.positions.settings.keep_tombstones:
        merge = merge.whenMatchedUpdateAll(is_newer).whenNotMatchedInsertAll()
    else:
        merge = merge.whenMatchedDelete(f"{is_newer} AND new.is_deleted")
        merge = merge.whenMatchedUpdateAll(is_newer)
        merge = merge.whenNotMatchedInsertAll("NOT new.is_deleted")
    if run.raised_log_starts:
        merge = merge.whenNotMatchedBySourceDelete(_below(run.raised_log_starts))
    with user_metadata(rows.sparkSession, run.positions.to_json()):
        merge.execute()


def _below(log_starts: Mapping[TopicPartition, int]) -> str:
    return " OR ".join(
        f"(old.topic = '{topic}' AND old.partition = {partition} AND old.offset < {offset})"
        for (topic, partition), offset in sorted(log_starts.items())
    )
