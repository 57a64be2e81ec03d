"""Tables of jobs: a run replaces the rows of its inputs, all at once. Tasks write the files of
large tables, and the driver those of few rows that it has: Spark's writer would take seconds.

Reasons: docs/decisions/0031, 0046 and 0047.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from kafkalog.errors import StatePositionError
from kafkalog.lake.delta.delta_layout import why_not_by_tasks
from kafkalog.lake.file_schemas import file_schema, write_no_rows
from kafkalog.lake.formats.answer_tables import RowsOfTasks
from kafkalog.lake.formats.found_tables import refuse_other_formats
from kafkalog.lake.layout import TableOutput
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.table_writer import written_rows
from kafkalog.lake.written_file import OnReport, Report, WrittenFile
from kafkalog.spark.delta_commit import (
    FileChanges,
    delta_tables,
    files_of,
    replace_all_files,
    replace_files,
    table_detail,
    table_version,
    why_not_rewritten,
    why_rows_stay,
)
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.kept_rows import KeptRows
from kafkalog.spark.lake.task_groups import reported_files
from kafkalog.spark.tables import (
    INPUT_COLUMN,
    quoted,
    read_table,
    refuse_other_columns,
    refuse_other_inputs,
    replace_rows_by_spark,
    spark_schema,
)
from kafkalog.spark.whole_tables import is_in_local_files, replace_whole
from kafkalog.storage.files import uris
from kafkalog.storage.log_dir.table_formats import SUCCESS
from kafkalog.views.engine import Rows, RowsInMemory


class _Writing(Protocol):
    """Rows of a table as files, which are reported when they are written."""

    def written(self, output: TableOutput, report: OnReport) -> list[WrittenFile]: ...


def replace_rows(
    job: JobSettings, table: str, inputs: Sequence[str], rows: Rows | DataFrame | RowsOfTasks
) -> str:
    """Write the rows of `inputs` into one of the job's tables, in place of those it has of them;
    return its path.

    A Delta table keeps the rows of other inputs. Parquet and JSON tables are replaced as a whole,
    and therefore refused where they hold rows of other inputs, or something else. Spark's writer
    writes what neither the driver nor tasks can write. Raises StatePositionError where another run
    has written to the Delta table meanwhile: then it is unchanged.
    """
    path = os.path.join(job.output_dir, table)
    refuse_other_format(job, table)
    if isinstance(rows, RowsInMemory):
        rows = KeptRows(SparkSession.active(), spark_schema(table), rows.table)
    files = None if job.table_format == "json" else _as_files(rows, table)
    if files is not None:
        spark = SparkSession.active()
        if why_not_by_files(spark, job, table, is_whole=False) is None:
            if not job.is_delta:
                refuse_other_inputs(spark, job.output_dir, table, job.table_format, inputs)
                write_directory(spark, path, table, files.written)
                return path
            version = table_version(spark, path)
            old = _files_of_inputs(spark, path, inputs) if version >= 0 else []
            if old is not None:
                with discarded_on_error(spark, path) as report:
                    new = files.written(TableOutput(path, ingest_run=0), report)
                own = f"{INPUT_COLUMN} IN ({', '.join(map(quoted, inputs))})"
                changes = FileChanges(old, new)
                commit_files(spark, job, table, changes, version=version, replaced_rows=own)
                return path
    frame = rows if isinstance(rows, DataFrame) else _frame(rows)
    return replace_rows_by_spark(frame, job.output_dir, table, job.table_format, inputs)


def refuse_other_format(job: JobSettings, *tables: str) -> None:
    """Raise RefusedOptionError where one of the job's tables is there in another format. Of paths
    that only Spark reaches this is not known."""
    if not uris.is_remote(job.output_dir):
        paths = [os.path.join(job.output_dir, table) for table in tables]
        refuse_other_formats(job.output_dir, paths, job.table_format)


class _RowsInDriver:
    """Rows of a table that the driver has, and writes itself."""

    def __init__(self, rows: pa.Table, table: str) -> None:
        self._rows, self._table = rows, table

    def written(self, output: TableOutput, report: OnReport) -> list[WrittenFile]:
        """Write the rows to a file; return it, or none without rows."""
        batches = self._rows.cast(file_schema(self._table)).to_batches()
        files = written_rows(output, self._table, batches)
        report(Report(0, tuple(files)))
        return files


def _as_files(rows: Rows | DataFrame | RowsOfTasks, table: str) -> _Writing | None:
    """Return what writes the rows to files without Spark's writer, None where that has to."""
    if isinstance(rows, DataFrame):
        return None
    if not isinstance(rows, KeptRows):
        return cast(RowsOfTasks, rows)
    refuse_other_columns(rows.schema, table)
    return None if rows.few is None else _RowsInDriver(rows.few, table)


def _frame(rows: Rows | RowsOfTasks) -> DataFrame:
    kept = rows if isinstance(rows, KeptRows) else cast(RowsOfTasks, rows).rows()
    return cast(KeptRows, kept).frame


def why_not_by_files(
    spark: SparkSession, job: JobSettings, table: str, *, is_whole: bool
) -> str | None:
    """Return why Spark's writer has to write one of the job's tables, None where files that it did
    not write can become part of the table; `is_whole` if they replace all that it has."""
    if is_remote():
        return "Spark Connect gives no access to files and transactions"
    path = os.path.join(job.output_dir, table)
    is_known = os.path.isabs(path) and is_in_local_files(spark, path)
    if not is_known and not (job.is_delta and uris.is_remote(path)):
        return "tasks cannot reach the table's file system"
    if not job.is_delta or not delta_tables().isDeltaTable(spark, path):
        return None
    found = delta_tables().forPath(spark, path)
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


def write_directory(
    spark: SparkSession,
    path: str,
    table: str,
    write: Callable[[TableOutput, OnReport], Sequence[WrittenFile]],
) -> None:
    """Write a directory of Parquet files in place of the one that is there."""

    def write_to(directory: str) -> None:
        with discarded_on_error(spark, directory) as report:
            files = write(TableOutput(directory, ingest_run=0), report)
        place = OutputDirectory(directory)
        if not files:
            write_no_rows(place, file_schema(table))
        place.replace(SUCCESS, b"")

    replace_whole(spark, path, write_to)


def commit_files(
    spark: SparkSession,
    job: JobSettings,
    table: str,
    files: FileChanges,
    *,
    version: int,
    is_whole: bool = False,
    replaced_rows: str | None = None,
    user_metadata: str | None = None,
) -> None:
    """Make files part of one of the job's Delta tables, in place of others or, if `is_whole`, of
    all that it has; create the table if `version`, from which the others were known, is -1.
    `replaced_rows` and `user_metadata` as in `replace_files`.

    Raises StatePositionError where the table has another version: then it is as it was, and the
    new files are removed. After any other error the table can have them.
    """
    path = os.path.join(job.output_dir, table)
    try:
        if is_whole or version < 0:
            replace_all_files(
                *(spark, path, files.added),
                version=version,
                schema=spark_schema(table).json(),
                user_metadata=user_metadata,
            )
        else:
            replace_files(
                *(spark, path, files),
                version=version,
                user_metadata=user_metadata,
                replaced_rows=replaced_rows,
            )
    except StatePositionError:
        _discard(path, files.added)
        raise


def discarded_on_error(spark: SparkSession, path: str) -> AbstractContextManager[OnReport]:
    """Yield what tasks report their files to, which are removed if the block fails."""
    return reported_files(spark, partial(_discard, path))


def _files_of_inputs(
    spark: SparkSession, path: str, inputs: Sequence[str]
) -> list[WrittenFile] | None:
    """Return the files of a Delta table that have rows of the inputs, None where one can also have
    rows of others."""
    files = files_of(spark, path)
    bounds = [_bounds(file) for file in files]
    # Delta's own writer cuts the bounds of long texts.
    is_exact = all(known is not None and known[0] == known[1] for known in bounds)
    others = (
        {known[0] for known in bounds if known} - set(inputs)
        if is_exact
        else _other_inputs(spark, path, inputs)
    )
    found = []
    for file, known in zip(files, bounds, strict=True):
        has_own, has_others = (
            known is None or any(known[0] <= each <= known[1] for each in each_of)
            for each_of in (inputs, others)
        )
        if has_own and has_others:
            return None
        if has_own:
            found.append(file)
    return found


def _bounds(file: WrittenFile) -> tuple[str, str] | None:
    """Return between which inputs those of a file are, None where that is not known."""
    least, greatest = file.least.get(INPUT_COLUMN), file.greatest.get(INPUT_COLUMN)
    if least is None or greatest is None or file.null_counts.get(INPUT_COLUMN, 1):
        return None
    return str(least), str(greatest)


def _other_inputs(spark: SparkSession, path: str, inputs: Sequence[str]) -> set[str]:
    """Return the other inputs that a table has rows of; rows without one are of a file without
    bounds."""
    output, table = os.path.split(path)
    rows = read_table(spark, output, table, "delta").select(INPUT_COLUMN).distinct()
    others = rows.where(~F.col(INPUT_COLUMN).isin(list(inputs)))
    return {row[INPUT_COLUMN] for row in others.collect()}


def _discard(path: str, files: Iterable[WrittenFile]) -> None:
    directory = OutputDirectory(path)
    for file in files:
        directory.delete(file.written_path)
