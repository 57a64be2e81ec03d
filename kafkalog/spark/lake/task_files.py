"""An export's tasks in Spark: each writes the files of some segments and reports them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import click
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.lake.decoding.decoding_requests import COLUMNS
from kafkalog.lake.export_plan import ExportPlan
from kafkalog.lake.export_task import ExportTask, OnSuppressed, suppressed_lines
from kafkalog.lake.layout import RECORDS
from kafkalog.lake.written_file import OnReport, Report, WrittenFile, no_report
from kafkalog.messages.payload_formats import ID_PREFIX_BYTES
from kafkalog.spark.lake.task_groups import RESULT, in_tasks, pickled, reported_files, results
from kafkalog.spark.tables import spark_schema
from kafkalog.storage.files.file_access import use_file_access
from kafkalog.storage.reading.read_plan import SegmentRead, pieces
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.progress import progress_bar
from kafkalog.views.reading.reading import read_segment
from kafkalog.views.reading.work_log import READ, reported_work
from kafkalog.words import counted, size_text

_NOT_COUNTED = (
    "over Spark Connect it is not known here how many records --suppress left out, and how many "
    "values it kept because nothing decodes them: the logs of the server's tasks say it for each "
    "topic"
)


def written_by_tasks(spark: SparkSession, plan: ExportPlan) -> list[WrittenFile]:
    """Write the records of all groups, each in a task, and return the files in order.

    What a repeated or a speculative attempt has written is not among them. If the export fails, the
    files of tasks that ended well are removed.
    """
    if not plan.groups:
        return []
    task = plan.task
    with reported(spark, plan) as report:

        def written(reads: Sequence[SegmentRead]) -> Iterator[pa.RecordBatch]:
            left_out: list[tuple[str, int, int]] = []
            with reported_work(READ, {"reads": str(len(reads))}):
                files = task.written_files(reads, on_suppressed=_counting(left_out, report))
            size = sum(read.size for read in reads)
            report(Report(size, tuple(files), tuple(left_out)))
            yield pickled(files)

        return list(chain.from_iterable(results(in_tasks(spark, plan.groups, written))))


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
    with reported(spark, plan) as report:

        def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            files = task.written_rows(rows)
            report(Report(0, tuple(files)))
            yield pickled(files)

        rows = decoded(rows_of_tasks(spark, task, plan.groups, report))
        return list(chain.from_iterable(results(rows.mapInArrow(run, RESULT))))


def rows_of_tasks(
    spark: SparkSession,
    task: ExportTask,
    groups: Sequence[Sequence[SegmentRead]],
    report: OnReport = no_report,
) -> DataFrame:
    """Return the records of all groups as rows of table `ingested_records`, each group's in a
    partition of its own."""

    def rows(reads: Sequence[SegmentRead]) -> Iterator[pa.RecordBatch]:
        # Spark takes no dictionaries.
        types = arrow_schema(RECORDS)
        left_out: list[tuple[str, int, int]] = []
        for batch in task.rows(reads, _counting(left_out, report)):
            yield batch.cast(types)
        report(Report(sum(read.size for read in reads), (), tuple(left_out)))

    return in_tasks(spark, groups, rows, spark_schema(RECORDS))


def _counting(left_out: list[tuple[str, int, int]], report: OnReport) -> OnSuppressed | None:
    """Return what keeps what is left out of each segment, for a report. Where nothing takes
    reports, tasks log it."""
    if report is no_report:
        return None
    return lambda *counts: left_out.append(counts)


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

    return in_tasks(spark, groups, rows, "key binary, value binary")


@contextmanager
def reported(spark: SparkSession, plan: ExportPlan) -> Iterator[OnReport]:
    """Yield what a task calls at its end. An error removes the files that tasks have reported. The
    plan gets the values that were kept of erased persons."""
    if is_remote():
        # Spark Connect has no accumulators, and a progress bar of its own.
        yield no_report
        if plan.task.suppression is not None:
            click.echo(_NOT_COUNTED, err=True)
        return
    with _progress(plan) as on_report, reported_files(spark, plan.discard, on_report) as report:
        yield report


@contextmanager
def _progress(plan: ExportPlan) -> Iterator[OnReport]:
    """Show how far the tasks are, and at the end what they have left out of topics:
    the yielded function takes what they report."""
    started_s, records, read_bytes = time.monotonic(), 0, 0
    total_bytes = sum(read.size for group in plan.groups for read in pieces(group))
    left_out: Counter[str] = Counter()

    def text() -> str:
        rate = read_bytes / max(time.monotonic() - started_s, 0.001)
        size, whole = size_text(read_bytes), size_text(total_bytes)
        return f"{counted(records, 'record')}, {size} of {whole}, {size_text(round(rate))}/s"

    with progress_bar(total_bytes, "exporting") as bar:

        def on_report(report: Report) -> None:
            nonlocal records, read_bytes
            records += sum(file.rows for file in report.files)
            read_bytes += report.read_bytes
            for topic, records_of, values_of in report.suppressed:
                left_out[topic] += records_of
                plan.kept[topic] += values_of
            bar.update(report.read_bytes, text())

        yield on_report
    for topic, count in sorted(left_out.items()):
        for line in suppressed_lines(topic, count, plan.kept[topic]):
            click.echo(line, err=True)
