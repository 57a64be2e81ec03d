"""The table of state, whose files tasks write: no value becomes a row of the JVM.

Reasons: docs/decisions/0031.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import numpy as np
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.errors import StatePositionError
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.layout import TARGET_FILE_BYTES, TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.state.outdated_rows import FilesWithout, Outdated, OutdatedRows
from kafkalog.lake.state.state_plan import StatePlan, plan_state
from kafkalog.lake.state.state_rows import STATE, write_no_rows
from kafkalog.lake.state.state_task import MOST_KEYS, StateFiles, StateTask
from kafkalog.lake.written_file import WrittenFile
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.lake.delta_commit import (
    FileChanges,
    files_of,
    replace_all_files,
    replace_files,
    table_detail,
    table_version,
    why_not_by_tasks,
    why_not_rewritten,
    why_rows_stay,
)
from kafkalog.spark.lake.delta_history import any_of
from kafkalog.spark.lake.state_files import (
    files_without,
    found_keys,
    written_state,
    written_survivors,
)
from kafkalog.spark.lake.task_groups import OnReport, reported_files
from kafkalog.spark.session import parallelism
from kafkalog.spark.tables import refuse_other_inputs, spark_schema
from kafkalog.spark.whole_tables import is_in_local_files, replace_whole
from kafkalog.storage.files import uris
from kafkalog.storage.reading.read_plan import TaskSize, packed
from kafkalog.views.planning.state_positions import StateRun, StateSource

# Whose keys the driver keeps at most, for a run that merges: 150 MB.
MOST_NEW_OFFSETS = 2 * MOST_KEYS
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
    if run.replaced is None and run.offsets_to_read > MOST_NEW_OFFSETS:
        return f"the run adds more than {MOST_NEW_OFFSETS:,} offsets, whose keys the driver keeps"
    return why_not_by_files(spark, job, STATE, is_whole=_is_whole(run))


def why_not_by_files(
    spark: SparkSession, job: JobSettings, table: str, *, is_whole: bool
) -> str | None:
    """Return why Spark's writer has to write one of the job's tables, None where files that it did
    not write can become part of the table; `is_whole` if they replace all that it has."""
    path = os.path.join(job.output_dir, table)
    is_known = os.path.isabs(path) and is_in_local_files(spark, path)
    if not is_known and not (job.is_delta and uris.is_remote(path)):
        return "tasks cannot reach the table's file system"
    if not job.is_delta or not DeltaTable.isDeltaTable(spark, path):
        return None
    found = DeltaTable.forPath(spark, path)
    detail = table_detail(found)
    if detail.partitionColumns:
        return "the table has partitions"
    columns = [(field.name, field.dataType) for field in found.toDF().schema]
    if columns != [(field.name, field.dataType) for field in spark_schema(table)]:
        return "the table has other columns"
    why = why_not_by_tasks(detail.properties)
    if why or is_whole:
        return why
    return why_rows_stay(detail.properties) or why_not_rewritten(spark, path)


def write_state(
    spark: SparkSession,
    job: JobSettings,
    inputs: Sequence[str],
    run: StateRun,
    sources: Sequence[StateSource],
    version: int | None,
) -> StateFiles:
    """Write the rows of a run for which `why_by_spark` has no reason; `version` is what
    `version_of` returned. Return the new files, and how many records have no key.

    Raises StatePositionError where another run has written since: then the table is unchanged.
    """
    if not run.has_work:
        return StateFiles([], 0)
    if not job.is_delta:
        refuse_other_inputs(spark, job.output_dir, STATE, job.table_format, inputs)
    plan = plan_state(job.paths, job.mode, run, sources, processes=parallelism(spark))
    path = os.path.join(job.output_dir, STATE)
    if version is None:
        return _written_directory(spark, path, plan, run)
    with _reported(spark, path) as report:
        task = _task(plan, run, path)
        if _is_whole(run):
            done, old = written_state(spark, task, plan, report), None
        else:
            done, old = _written_changes(spark, task, plan, run, report)
    text = run.positions.to_json()
    with removed_where_refused(path, done.files):
        if old is None:
            replace_all_files(
                spark,
                path,
                done.files,
                version=version,
                schema=spark_schema(STATE).json(),
                user_metadata=text,
            )
        else:
            replace_files(
                spark,
                path,
                FileChanges(old, done.files),
                version=version,
                user_metadata=text,
                replaced_rows=None if run.replaced is None else any_of(run.replaced),
            )
    return done


@contextmanager
def removed_where_refused(path: str, files: Sequence[WrittenFile]) -> Iterator[None]:
    """Remove the files that a commit refuses. After any other error the table can have them."""
    try:
        yield
    except StatePositionError:
        _discard(path, files)
        raise


def _written_directory(
    spark: SparkSession, path: str, plan: StatePlan, run: StateRun
) -> StateFiles:
    """Write a directory of Parquet files in place of the one that is there."""
    done = StateFiles([], 0)

    def write(directory: str) -> None:
        nonlocal done
        with _reported(spark, directory) as report:
            done = written_state(spark, _task(plan, run, directory), plan, report)
        place = OutputDirectory(directory)
        if not done.files:
            write_no_rows(place)
        place.replace(_SUCCESS, b"")

    replace_whole(spark, path, write)
    return done


def _written_changes(
    spark: SparkSession, task: StateTask, plan: StatePlan, run: StateRun, report: OnReport
) -> tuple[StateFiles, list[WrittenFile]]:
    """Write what changes in a table of which other rows stay. Return the new files, and those that
    they take the place of."""
    if run.replaced is None:
        keys, keyless = found_keys(spark, task, plan)
        starts = run.raised_log_starts
        outdated = {
            # No keys are None.
            key: Outdated(starts.get(key, 0), keys.get(key) or None)
            for key in {*keys, *starts}
        }
        without = _files_without(spark, task, plan, outdated, report)
        survivors = {
            key: np.setdiff1d(found.offsets(), without.overtaken.get(key, ()))
            for key, found in keys.items()
        }
        files = written_survivors(spark, task, plan, survivors, report)
        done = StateFiles(files, keyless)
    else:
        without = _files_without(
            spark, task, plan, dict.fromkeys(run.replaced, Outdated(LARGEST_OFFSET)), report
        )
        done = written_state(spark, task, plan, report)
    return StateFiles([*without.written, *done.files], done.keyless), without.removed


def _files_without(
    spark: SparkSession,
    task: StateTask,
    plan: StatePlan,
    outdated: Mapping[TopicPartition, Outdated],
    report: OnReport,
) -> FilesWithout:
    rows = OutdatedRows(task.output, plan.options.file_access, outdated)
    files = [file for file in files_of(spark, task.output.path) if rows.may_be_in(file)]
    files.sort(key=lambda file: (file.least.get("topic", ""), file.least.get("partition", 0)))
    groups = packed(files, TaskSize(TARGET_FILE_BYTES, cores=parallelism(spark)))
    return files_without(spark, rows, groups, report)


def _task(plan: StatePlan, run: StateRun, path: str) -> StateTask:
    secret, keeps = secrets.token_bytes(SECRET_BYTES), run.positions.settings.keep_tombstones
    return StateTask(plan.options, TableOutput(path, ingest_run=0), keeps, secret)


def _reported(spark: SparkSession, path: str) -> AbstractContextManager[OnReport]:
    return reported_files(spark, partial(_discard, path))


def _discard(path: str, files: Iterable[WrittenFile]) -> None:
    directory = OutputDirectory(path)
    for file in files:
        directory.delete(file.written_path)


def _is_whole(run: StateRun) -> bool:
    """Return whether the table has no row but the run's afterwards."""
    return run.replaced is not None and run.replaced.issuperset(run.positions.next_offsets)
