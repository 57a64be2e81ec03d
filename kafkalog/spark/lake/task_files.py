"""An export's tasks in Spark: each writes the files of some segments and reports them."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import click
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.lake.export_plan import ExportPlan
from kafkalog.lake.export_task import ExportTask
from kafkalog.lake.layout import RECORDS
from kafkalog.lake.written_file import WrittenFile
from kafkalog.messages.payload_formats import ID_PREFIX_BYTES
from kafkalog.spark.decoding.decoding_requests import COLUMNS
from kafkalog.spark.tables import spark_schema
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.reading.reading import read_segment
from kafkalog.views.reading.work_log import READ, reported_work
from kafkalog.words import counted, size_text


class Report(NamedTuple):
    """What a task reports that has ended well: the bytes of segments that it read, its files."""

    read_bytes: int
    files: tuple[WrittenFile, ...]


_OnReport = Callable[[Report], None]


def _no_report(report: Report) -> None:
    pass


class Reports(AccumulatorParam[list[Report]]):
    """Adds up reports as they come to the driver, and tells each."""

    def __init__(self, on_report: Callable[[Report], None] | None = None) -> None:
        self._on_report = on_report

    def __reduce__(self) -> tuple[type[Reports], tuple[()]]:
        """As it goes to tasks."""
        return Reports, ()

    def zero(self, value: list[Report]) -> list[Report]:
        return []

    def addInPlace(  # noqa: N802
        self, value1: list[Report], value2: list[Report]
    ) -> list[Report]:
        if self._on_report is not None:
            for report in value2:
                self._on_report(report)
        return value1 + value2


def written_by_tasks(spark: SparkSession, plan: ExportPlan) -> list[WrittenFile]:
    """Write the records of all groups, each in a task, and return the files in order.

    What a repeated or a speculative attempt has written is not among them. If the export fails, the
    files of tasks that ended well are removed; those of killed processes stay, and no commit names
    them.
    """
    groups = [pickle.dumps(group) for group in plan.groups]
    if not groups:
        return []
    with _reported(spark, plan) as report:
        run = _run(plan.task, groups, report)
        return _files(spark.range(0, len(groups), 1, len(groups)), run)


def written_after_decoding(
    spark: SparkSession, plan: ExportPlan, decoded: Callable[[DataFrame], DataFrame]
) -> list[WrittenFile]:
    """Write the records of all groups as `decoded` gives them, and return the files in order.

    The rows go through the JVM, in whose functions `decoded` consists. Otherwise as
    `written_by_tasks`.
    """
    if not plan.groups:
        return []
    task = plan.task
    with _reported(spark, plan) as report:

        def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            files = task.written_rows(rows)
            report(Report(0, tuple(files)))
            yield _pickled(files)

        return _files(decoded(rows_of_tasks(spark, task, plan.groups, report)), run)


def rows_of_tasks(
    spark: SparkSession,
    task: ExportTask,
    groups: Sequence[Sequence[SegmentRead]],
    report: _OnReport = _no_report,
) -> DataFrame:
    """Return the records of all groups as rows of table `ingested_records`, each group's in a
    partition of its own."""

    def rows(reads: Sequence[SegmentRead]) -> Iterator[pa.RecordBatch]:
        # Spark takes no dictionaries.
        types = arrow_schema(RECORDS)
        for batch in task.rows(reads):
            yield batch.cast(types)
        report(Report(sum(read.size for read in reads), ()))

    return _rows(spark, groups, rows, spark_schema(RECORDS))


def id_prefixes_of_tasks(
    spark: SparkSession, options: ReadOptions, groups: Sequence[Sequence[SegmentRead]]
) -> DataFrame:
    """Return the first bytes of the keys and values of all groups, which can have a schema id."""

    def rows(reads: Sequence[SegmentRead]) -> Iterator[pa.RecordBatch]:
        use_file_access(options.file_access)
        for read in reads:
            for batch in read_segment(read, options, COLUMNS):
                prefixes = [
                    pc.binary_slice(batch.column(name), 0, ID_PREFIX_BYTES) for name in COLUMNS
                ]
                yield pa.RecordBatch.from_arrays(prefixes, names=list(COLUMNS))

    return _rows(spark, groups, rows, "key binary, value binary")


def _rows(
    spark: SparkSession,
    groups: Sequence[Sequence[SegmentRead]],
    rows: Callable[[Sequence[SegmentRead]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Return what `rows` gives of each group, in a task of its own."""
    if not groups:
        return spark.createDataFrame([], schema)
    pickled = [pickle.dumps(tuple(group)) for group in groups]

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for reads in _groups_of(numbers, pickled):
            yield from rows(reads)

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(run, schema)


def _run(
    task: ExportTask, groups: Sequence[bytes], report: _OnReport
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for reads in _groups_of(numbers, groups):
            with reported_work(READ, {"reads": str(len(reads))}):
                files = task.written_files(reads)
            report(Report(sum(read.size for read in reads), tuple(files)))
            yield _pickled(files)

    return run


def _pickled(files: Sequence[WrittenFile]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"files": [pickle.dumps(files)]})


def _files(
    tasks: DataFrame, run: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
) -> list[WrittenFile]:
    rows = tasks.mapInArrow(run, "files binary").collect()
    return [file for row in rows for file in pickle.loads(row.files)]


@contextmanager
def _reported(spark: SparkSession, plan: ExportPlan) -> Iterator[_OnReport]:
    """Yield what a task calls at its end. An error removes the files that tasks have reported."""
    if is_remote():
        # Spark Connect has no accumulators, and a progress bar of its own.
        yield _no_report
        return
    with _progress(sum(read.size for group in plan.groups for read in group)) as on_report:
        reports = spark.sparkContext.accumulator([], Reports(on_report))
        try:
            yield lambda report: reports.add([report])
        except BaseException:
            plan.discard(file for report in reports.value for file in report.files)
            raise


def _groups_of(
    numbers: Iterator[pa.RecordBatch], groups: Sequence[bytes]
) -> Iterator[tuple[SegmentRead, ...]]:
    """Yield the groups of a task, which are the only ones that it unpickles."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield pickle.loads(groups[number])


@contextmanager
def _progress(total_bytes: int) -> Iterator[Callable[[Report], None]]:
    """Show on a terminal how far the tasks are: the yielded function takes what they report."""
    started_s, records, read_bytes = time.monotonic(), 0, 0

    def text(_: object) -> str:
        rate = read_bytes / max(time.monotonic() - started_s, 0.001)
        size, whole = size_text(read_bytes), size_text(total_bytes)
        return f"{counted(records, 'record')}, {size} of {whole}, {size_text(round(rate))}/s"

    with click.progressbar(
        length=total_bytes,
        label="writing",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
        item_show_func=text,
    ) as bar:

        def on_report(report: Report) -> None:
            nonlocal records, read_bytes
            records += sum(file.rows for file in report.files)
            read_bytes += report.read_bytes
            bar.update(report.read_bytes)

        yield on_report
