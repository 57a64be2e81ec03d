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
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.lake.export_task import ExportTask
from kafkalog.lake.layout import RECORDS
from kafkalog.lake.output_directory import OutputDirectory
from kafkalog.lake.written_file import WrittenFile
from kafkalog.spark.tables import spark_schema
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.reading.work_log import READ, reported_work
from kafkalog.words import counted, size_text


class _Report(NamedTuple):
    """What a task reports that has ended well: the bytes of segments that it read, its files."""

    read_bytes: int
    files: tuple[WrittenFile, ...]


class _Reports(AccumulatorParam[list[_Report]]):
    """Adds up reports as they come to the driver, and tells each."""

    def __init__(self, on_report: Callable[[_Report], None] | None = None) -> None:
        self._on_report = on_report

    def __reduce__(self) -> tuple[type[_Reports], tuple[()]]:
        """As it goes to tasks."""
        return _Reports, ()

    def zero(self, value: list[_Report]) -> list[_Report]:
        return []

    def addInPlace(  # noqa: N802
        self, value1: list[_Report], value2: list[_Report]
    ) -> list[_Report]:
        if self._on_report is not None:
            for report in value2:
                self._on_report(report)
        return value1 + value2


def written_by_tasks(
    spark: SparkSession, task: ExportTask, groups: Sequence[Sequence[SegmentRead]]
) -> list[WrittenFile]:
    """Write the records of all groups, each in a task, and return the files in order.

    What a repeated or a speculative attempt has written is not among them. If the export fails, the
    files of tasks that ended well are removed; those of killed processes stay, and no commit names
    them.
    """
    if not groups:
        return []
    with _progress(sum(read.size for group in groups for read in group)) as on_report:
        # Spark Connect has no accumulators, and a progress bar of its own.
        reports = None if is_remote() else spark.sparkContext.accumulator([], _Reports(on_report))
        run = _run(task, [pickle.dumps(tuple(group)) for group in groups], reports)
        tasks = spark.range(0, len(groups), 1, len(groups))
        try:
            rows = tasks.mapInArrow(run, "files binary").collect()
        except BaseException:
            for report in () if reports is None else reports.value:
                _remove(task, report.files)
            raise
    return [file for row in rows for file in pickle.loads(row.files)]


def rows_of_tasks(
    spark: SparkSession, task: ExportTask, groups: Sequence[Sequence[SegmentRead]]
) -> DataFrame:
    """Return the records of all groups as rows of table `ingested_records`, for Spark's writer."""
    schema = spark_schema(RECORDS)
    if not groups:
        return spark.createDataFrame([], schema)
    pickled = [pickle.dumps(tuple(group)) for group in groups]

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark takes no dictionaries.
        types = arrow_schema(RECORDS)
        for reads in _groups_of(numbers, pickled):
            for rows in task.rows(reads):
                yield rows.cast(types)

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(run, schema)


def _run(
    task: ExportTask, groups: Sequence[bytes], reports: Accumulator[list[_Report]] | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for reads in _groups_of(numbers, groups):
            with reported_work(READ, {"reads": str(len(reads))}):
                files = task.written_files(reads)
            if reports is not None:
                reports.add([_Report(sum(read.size for read in reads), tuple(files))])
            yield pa.RecordBatch.from_pydict({"files": [pickle.dumps(files)]})

    return run


def _groups_of(
    numbers: Iterator[pa.RecordBatch], groups: Sequence[bytes]
) -> Iterator[tuple[SegmentRead, ...]]:
    """Yield the groups of a task, which are the only ones that it unpickles."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield pickle.loads(groups[number])


def _remove(task: ExportTask, files: Sequence[WrittenFile]) -> None:
    outputs = {output.table: output.path for output in task.outputs.values()}
    for file in files:
        directory = OutputDirectory(outputs[file.table])
        directory.delete(file.written_path)


@contextmanager
def _progress(total_bytes: int) -> Iterator[Callable[[_Report], None]]:
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

        def on_report(report: _Report) -> None:
            nonlocal records, read_bytes
            records += sum(file.rows for file in report.files)
            read_bytes += report.read_bytes
            bar.update(report.read_bytes)

        yield on_report
