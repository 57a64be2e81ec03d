"""The table of state, whose files tasks write: no value becomes a row of the JVM.

Reasons: docs/decisions/0031.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.errors import StatePositionError
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.state.state_plan import plan_state
from kafkalog.lake.state.state_rows import STATE, write_no_rows
from kafkalog.lake.state.state_task import StateFiles, StateTask
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.lake.delta_commit import (
    replace_all_files,
    table_detail,
    table_version,
    why_not_by_tasks,
)
from kafkalog.spark.lake.state_files import written_state
from kafkalog.spark.session import parallelism
from kafkalog.spark.tables import refuse_other_inputs, spark_schema
from kafkalog.spark.whole_tables import is_in_local_files, replace_whole
from kafkalog.storage.files import uris
from kafkalog.views.planning.state_positions import StateRun, StateSource

# Spark's writer puts it beside the files of a table that is whole.
_SUCCESS = "_SUCCESS"


def version_of(spark: SparkSession, job: JobSettings) -> int | None:
    """Return the version of the table, -1 if there is none; None where the job has no versions, or
    cannot know them. To be called before a run is planned."""
    is_known = job.is_delta and not is_remote()
    return table_version(spark, os.path.join(job.output_dir, STATE)) if is_known else None


def why_by_spark(spark: SparkSession, job: JobSettings, run: StateRun) -> str | None:
    """Return why Spark's writer has to write the rows of a run, None where tasks can."""
    if is_remote():
        return "Spark Connect gives no access to files and transactions"
    if job.table_format == "json":
        return "the format is json"
    if run.replaced is None:
        return "the run merges rows into those of the table"
    path = os.path.join(job.output_dir, STATE)
    is_known = os.path.isabs(path) and is_in_local_files(spark, path)
    if not is_known and not (job.is_delta and uris.is_remote(path)):
        return "tasks cannot reach the table's file system"
    if not job.is_delta or not DeltaTable.isDeltaTable(spark, path):
        return None
    if set(run.positions.next_offsets) - run.replaced:
        return "the table keeps rows of other partitions"
    return _why_not_these_files(DeltaTable.forPath(spark, path))


def write_state(
    spark: SparkSession,
    job: JobSettings,
    inputs: Sequence[str],
    run: StateRun,
    sources: Sequence[StateSource],
    version: int | None,
) -> StateFiles:
    """Write the rows of a run for which `why_by_spark` has no reason, in place of all that the
    table holds; `version` is what `version_of` returned. Return what the tasks have done.

    Raises StatePositionError where another run has written since: then the table is unchanged.
    """
    if not job.is_delta:
        refuse_other_inputs(spark, job.output_dir, STATE, job.table_format, inputs)
    plan = plan_state(job.paths, job.mode, run, sources, processes=parallelism(spark))
    secret, keeps = secrets.token_bytes(SECRET_BYTES), run.positions.settings.keep_tombstones
    path = os.path.join(job.output_dir, STATE)
    done = StateFiles([], 0)

    def write(directory: str) -> None:
        nonlocal done
        output = TableOutput(directory, ingest_run=0)
        done = written_state(spark, StateTask(plan.options, output, keeps, secret), plan)

    def write_parquet(directory: str) -> None:
        write(directory)
        place = OutputDirectory(directory)
        if not done.files:
            write_no_rows(place)
        place.replace(_SUCCESS, b"")

    if version is None:
        replace_whole(spark, path, write_parquet)
        return done
    write(path)
    try:
        replace_all_files(
            spark,
            path,
            done.files,
            version=version,
            schema=spark_schema(STATE).json(),
            user_metadata=run.positions.to_json(),
        )
    except StatePositionError:
        # After any other error the table can have the files.
        for file in done.files:
            OutputDirectory(path).delete(file.written_path)
        raise
    return done


def _why_not_these_files(table: DeltaTable) -> str | None:
    detail = table_detail(table)
    if detail.partitionColumns:
        return "the table has partitions"
    found = [(field.name, field.dataType) for field in table.toDF().schema]
    if found != [(field.name, field.dataType) for field in spark_schema(STATE)]:
        return "the table has other columns"
    return why_not_by_tasks(detail.properties)
