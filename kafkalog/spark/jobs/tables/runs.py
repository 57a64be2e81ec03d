"""A job's run: its input is found and announced before a session is started; in the session it
writes the tables of its answer and shows some rows; it says the rest, and ends with an exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

import click
from pyspark.sql import SparkSession

from kafkalog.exit_codes import ExitCode
from kafkalog.inspection.metadata.current_topics import Doubles, find_logs
from kafkalog.lake.formats.answer_tables import RowsOfTasks
from kafkalog.lake.formats.found_tables import refuse_inside_table
from kafkalog.spark import session
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.jobs.spark_views import SparkViews
from kafkalog.spark.jobs.tables.written_tables import replace_rows
from kafkalog.spark.tables import show_rows
from kafkalog.storage.files.files import matching_paths
from kafkalog.storage.files.output_files import refuse_unwritable
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.storage.log_dir.log_dir import input_entries
from kafkalog.storage.log_dir.other_entries import absent_lines
from kafkalog.storage.log_dir.read_directories import directories_read, refuse_tables
from kafkalog.storage.names import INTERNAL_TOPICS
from kafkalog.storage.partition_log import PartitionLog, bytes_in, found_words
from kafkalog.views.engine import Rows
from kafkalog.views.options.options import Mode
from kafkalog.words import counted
from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs

# So many bytes take a job as long if all of them pass through the JVM, with less compiled code or
# more (docs/decisions/0044).
_SMALL_BYTES = 2 * 2**30
_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})


def announced_logs(
    job: JobSettings,
    doubles: Doubles = Doubles.ASSIGNED,
    *,
    chosen: Callable[[Sequence[PartitionLog]], Sequence[PartitionLog]] = list,
) -> tuple[list[str], list[PartitionLog]]:
    """Return the paths to read, globs resolved, and the logs under them; print the size of those
    that are `chosen` to stderr. `doubles` are partitions in two directories of one broker.

    Raises LogDirError for what cannot be read, and OptionError for an output in what is read.
    """
    logs = find_logs(job.paths, strict=job.mode == Mode.FAILFAST.value, doubles=doubles)
    inputs = [entry for path in job.paths for entry in input_entries(path)]
    files = [entry.path for entry in inputs if not entry.is_directory]
    _refuse_output(job.output_dir, [*directories_read(inputs, logs), *files])
    print(found_words(chosen(logs)), file=sys.stderr)
    return [entry.path for entry in inputs], logs


def with_internal(
    is_topic: Callable[[str], bool] | None,
) -> Callable[[Sequence[PartitionLog]], Sequence[PartitionLog]]:
    """Return what chooses the logs of some topics, all where `is_topic` is None, and the internal
    ones: those say what groups have committed."""

    def chosen(logs: Sequence[PartitionLog]) -> Sequence[PartitionLog]:
        if is_topic is None:
            return logs
        return [log for log in logs if log.topic in INTERNAL_TOPICS or is_topic(log.topic or "")]

    return chosen


@dataclass(frozen=True, slots=True)
class JobRun:
    """What a job has in its session. `inputs` are the paths that its rows are about, `paths` the
    tables that it has written."""

    job: JobSettings
    inputs: Sequence[str]
    spark: SparkSession
    views: SparkViews
    paths: list[str] = field(default_factory=list)

    def save(
        self,
        tables: Mapping[str, Rows | RowsOfTasks],
        shown: Mapping[str, Sequence[str]] = _NOTHING,
    ) -> None:
        """Write tables, and print the columns in `shown` of those that have rows. Raises what
        `replace_rows` raises."""
        for table, rows in tables.items():
            self.paths.append(replace_rows(self.job, table, self.inputs, rows))
        for table, columns in shown.items():
            # Rows that tasks are to write are not shown.
            rows = cast(Rows, tables[table])
            if not rows.is_empty:
                show_rows(self.spark, table, rows, columns, self.job.show)

    def ended(self, words: Iterable[str], *, has_findings: bool) -> ExitCode:
        """Print the sentences of the answer and where its tables are; return the exit code."""
        print(*words, f"tables: {' '.join(self.paths)}", sep="\n")
        return self.job.exit_code(has_findings=has_findings)


@contextmanager
def job_run(
    job: JobSettings,
    inputs: Sequence[str],
    logs: Sequence[PartitionLog] = (),
    *,
    about: Sequence[str] | None = None,
    with_avro: bool = False,
    compiles_less: bool = True,
) -> Iterator[JobRun]:
    """Start the session of the job that is called, to read the logs that were found in the inputs.
    Its rows are `about` other paths than these where that is not None."""
    with session.job_session(
        f"kafkalog {click.get_current_context().command.name}",
        with_delta=job.is_delta,
        with_avro=with_avro,
        compiles_less=compiles_less,
    ) as spark:
        views = SparkViews(spark, inputs, logs, {"mode": job.mode})
        yield JobRun(job, inputs if about is None else about, spark, views)


def is_small(logs: Iterable[PartitionLog]) -> bool:
    """Return whether a job that passes all records through the JVM ends before optimized code
    pays."""
    return bytes_in(logs) <= _SMALL_BYTES


def print_absent(inputs: Sequence[str], logs: Sequence[PartitionLog]) -> None:
    """Print which partitions only checkpoints know: the verdict does not cover them."""
    for line in absent_lines(inputs, logs):
        print(line)


def announced_data_dirs(job: JobSettings) -> list[DataDir]:
    """Return the files of ZooKeeper's servers; print their number to stderr.

    Raises LogDirError for a path without any, and OptionError for an output in what is read.
    """
    found = find_data_dirs(job.paths)
    paths = (path for pattern in job.paths for path in matching_paths(pattern))
    _refuse_output(job.output_dir, paths)
    files = sum(len(data_dir.snapshots) + len(data_dir.logs) for data_dir in found)
    print(f"found {counted(files, 'file')} of {counted(len(found), 'server')}", file=sys.stderr)
    return found


def _refuse_output(output: str, directories: Iterable[str]) -> None:
    """Raise OptionError for an output in what is read, or one that cannot be written to. Spark
    alone checks a path on a cluster, and the catalog its tables."""
    if not output:
        return
    refuse_tables(output, directories)
    if not is_remote(output):
        refuse_inside_table(output)
    is_elsewhere = is_remote(output) or "HADOOP_CONF_DIR" in os.environ
    if session.is_on_this_machine() and not is_elsewhere:
        refuse_unwritable("--output-dir", absolute_path(output))
