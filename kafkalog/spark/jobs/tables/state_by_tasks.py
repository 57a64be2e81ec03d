"""The table of state, whose files tasks write: no value becomes a row of the JVM.

Reasons: docs/decisions/0031.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from kafkalog.columns.keys.key_hashes import SECRET_BYTES
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.lake.layout import TARGET_FILE_BYTES, TableOutput
from kafkalog.lake.state.outdated_rows import (
    FilePart,
    FoundRows,
    Outdated,
    OutdatedRows,
    changed,
    file_parts,
    overtaken,
)
from kafkalog.lake.state.state_plan import StatePlan, plan_state
from kafkalog.lake.state.state_rows import STATE
from kafkalog.lake.state.state_task import MOST_KEYS, StateFiles, StateTask
from kafkalog.lake.written_file import OnReport, WrittenFile
from kafkalog.questions.state_files import (
    found_keys,
    found_outdated,
    written_changes,
    written_state,
)
from kafkalog.spark.delta_commit import FileChanges, files_of, table_version
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.jobs.spark_views import SparkViews
from kafkalog.spark.jobs.tables.written_tables import (
    commit_files,
    discarded_on_error,
    why_not_by_files,
    write_directory,
)
from kafkalog.spark.lake.delta_history import any_of
from kafkalog.spark.tables import refuse_other_inputs
from kafkalog.storage.reading.read_plan import TaskSize, packed
from kafkalog.views.planning.state_positions import StateRun
from kafkalog.views.planning.table_positions import StateSource

# Whose keys the driver keeps at most, for a run that merges: 150 MB.
MOST_NEW_OFFSETS = 2 * MOST_KEYS


_Part = TypeVar("_Part", FilePart, FoundRows)


def version_of(spark: SparkSession, job: JobSettings) -> int | None:
    """Return the version of the table, -1 if there is none; None where the job has no versions, or
    cannot know them. To be called before a run is planned."""
    is_known = job.is_delta and not is_remote()
    return table_version(spark, os.path.join(job.output_dir, STATE)) if is_known else None


def why_by_spark(spark: SparkSession, job: JobSettings, run: StateRun) -> str | None:
    """Return why Spark's writer has to write the rows of a run, None where tasks can."""
    if job.table_format == "json":
        return "the format is json"
    if run.replaced is None and run.offsets_to_read > MOST_NEW_OFFSETS:
        return f"the run adds more than {MOST_NEW_OFFSETS:,} offsets, whose keys the driver keeps"
    return why_not_by_files(spark, job, STATE, is_whole=run.is_whole)


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
    views = SparkViews(spark, job.paths, ())
    plan = plan_state(job.paths, job.mode, run, sources, processes=views.cores)
    path = os.path.join(job.output_dir, STATE)
    if version is None:
        return _written_directory(views, path, plan, run)
    old: list[WrittenFile] = []
    with discarded_on_error(spark, path) as report:
        task = _task(plan, run, path)
        if run.is_whole:
            done = written_state(views, task, plan, report)
        else:
            done, old = _written_changes(views, task, plan, run, report)
    commit_files(
        *(spark, job, STATE, FileChanges(old, done.files)),
        version=version,
        is_whole=run.is_whole,
        replaced_rows=None if run.replaced is None else any_of(run.replaced),
        user_metadata=run.positions.to_json(),
    )
    return done


def _written_directory(views: SparkViews, path: str, plan: StatePlan, run: StateRun) -> StateFiles:
    """Write a directory of Parquet files in place of the one that is there."""
    done = StateFiles([], 0)

    def write(output: TableOutput, report: OnReport) -> list[WrittenFile]:
        nonlocal done
        done = written_state(views, _task(plan, run, output.path), plan, report)
        return done.files

    write_directory(views.spark, path, STATE, write)
    return done


def _written_changes(
    views: SparkViews, task: StateTask, plan: StatePlan, run: StateRun, report: OnReport
) -> tuple[StateFiles, list[WrittenFile]]:
    """Write what changes in a table of which other rows stay. Return the new files, and those that
    they take the place of."""
    if run.replaced is not None:
        outdated = dict.fromkeys(run.replaced, Outdated(LARGEST_OFFSET))
        found = changed(_found_outdated(views, task, plan, outdated))
        others = written_changes(views, task, _by_task(views, found), [], report)
        done = written_state(views, task, plan, report)
        return StateFiles([*others, *done.files], done.keyless), _files_of(found)
    keys, keyless = found_keys(views, task, plan)
    starts = run.raised_log_starts
    outdated = {
        # No keys are None.
        key: Outdated(starts.get(key, 0), keys.get(key) or None)
        for key in {*keys, *starts}
    }
    found = _found_outdated(views, task, plan, outdated)
    survivors = {
        key: np.setdiff1d(own.offsets(), overtaken(found, key), assume_unique=True)
        for key, own in keys.items()
    }
    found = changed(found)
    files = written_changes(
        views, task, _by_task(views, found), plan.with_survivors(survivors), report
    )
    return StateFiles(files, keyless), _files_of(found)


def _found_outdated(
    views: SparkViews, task: StateTask, plan: StatePlan, outdated: Mapping[TopicPartition, Outdated]
) -> list[FoundRows]:
    rows = OutdatedRows(task.output, plan.options.file_access, outdated)
    files = [file for file in files_of(views.spark, task.output.path) if rows.may_be_in(file)]
    files.sort(key=lambda file: (file.least.get("topic", ""), file.least.get("partition", 0)))
    return found_outdated(views, rows, _by_task(views, file_parts(files, views.cores)))


def _by_task(views: SparkViews, parts: Sequence[_Part]) -> list[tuple[_Part, ...]]:
    return packed(parts, TaskSize(TARGET_FILE_BYTES, cores=views.cores))


def _files_of(found: Sequence[FoundRows]) -> list[WrittenFile]:
    return list({each.part.file.path: each.part.file for each in found}.values())


def _task(plan: StatePlan, run: StateRun, path: str) -> StateTask:
    secret, keeps = secrets.token_bytes(SECRET_BYTES), run.positions.keep_tombstones
    return StateTask(plan.options, TableOutput(path, ingest_run=0), keeps, secret)
