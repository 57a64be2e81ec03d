"""The inputs of jobs: found and announced before a session is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence

from kafkalog.inspection.metadata.current_topics import Doubles, find_logs
from kafkalog.lake.formats.found_tables import refuse_inside_table
from kafkalog.spark.jobs.job import JobSettings
from kafkalog.spark.session import is_on_this_machine
from kafkalog.storage.files.files import matching_paths
from kafkalog.storage.files.output_files import refuse_unwritable
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.storage.log_dir.log_dir import input_entries
from kafkalog.storage.log_dir.other_entries import absent_lines
from kafkalog.storage.log_dir.read_directories import directories_read, refuse_tables
from kafkalog.storage.names import INTERNAL_TOPICS
from kafkalog.storage.partition_log import PartitionLog, bytes_in, found_words
from kafkalog.views.options.options import Mode
from kafkalog.words import counted
from kafkalog.zookeeper.data_dir import DataDir, find_data_dirs

# So many bytes take a job as long if all of them pass through the JVM, with less compiled code or
# more (docs/decisions/0044).
_SMALL_BYTES = 2 * 2**30


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
    if is_on_this_machine() and not is_elsewhere:
        refuse_unwritable("--output-dir", absolute_path(output))
