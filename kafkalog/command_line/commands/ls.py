"""`kafkalog ls`: what is in these log directories."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.inputs import logs_of_topics
from kafkalog.command_line.terminal import (
    print_note,
    print_text,
    printed_columns,
    table_format_option,
)
from kafkalog.errors import ConflictingOptionsError, LogDirError
from kafkalog.storage.partition_log import bytes_in
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.parameter_types import Size
from kafkalog.views.parallel import in_order, processes_for
from kafkalog.views.progress import progress_bar
from kafkalog.words import counted, first_names, size_text

if TYPE_CHECKING:
    from kafkalog.storage.log_dir.disk_usage import DiskUsage
    from kafkalog.storage.log_dir.other_entries import OtherEntry
    from kafkalog.storage.partition_log import PartitionLog

_LEVELS = ("topic", "partition", "segment", "kind", "producer")
_PRODUCER = "producer"
_SORT_KEYS = ("name", "size", "records", "time")
_MOST_PLACES = 3

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command reads batch headers only: no payload, and no checksum. RECORDS counts the records in the
files, including those below the log start offset; CONTROL-RECORDS, such as transaction markers, are
counted separately. RATIO, with --deep, is the uncompressed size of the batches divided by their
size. TOTAL-SIZE is SIZE, of the log files, plus SIDE-BYTES, of indexes and other files beside them.
The last lines sum up all files, also those on their way out; ALLOCATED, with --by kind, is what the
file system has given them, which is less for indexes that a broker has preallocated.

LEADER and REPLICAS, with --by partition, are those of the cluster's metadata, if the input has a
copy of it. Lines that begin with "missing:" name partitions that should be there and are not.

With --from-time, --until-time or --by producer the rows say what came in the period: a batch counts
by its largest timestamp, so FIRST-TIMESTAMP is that of the first batch, whose records can begin
earlier. CLOCK says whose time it is, and LAST-PRODUCER-ID is that of the newest batch.

\b
Examples:
  kafkalog ls /var/lib/kafka/data
  kafkalog ls /var/lib/kafka/data --sort size
  kafkalog ls /var/lib/kafka/data --by kind
  kafkalog ls /var/lib/kafka/data --by partition --topic orders
  kafkalog ls /var/lib/kafka/data/orders-0 --by segment
  kafkalog ls '/backup/broker-*' --quick --format json
  kafkalog ls '/backup/broker-*' --unread --sort size
  kafkalog ls /var/lib/kafka/data --savings
  kafkalog ls /var/lib/kafka/data --since -7d
  kafkalog ls /var/lib/kafka/data --by producer --topic orders
"""
# How often `--savings` reads the headers.
_READS = 2


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@shared.by_option(_LEVELS, "Print a row per topic, partition, segment, kind of file, or producer.")
@click.option(
    "--sort",
    type=click.Choice(_SORT_KEYS),
    default=_SORT_KEYS[0],
    show_default=True,
    help="Order of the rows: by name, by size with side files or by records, the largest first, or "
    "by time, those without a new record for longest first.",
)
@click.option("--quick", is_flag=True, help="Print names and sizes only, without opening files.")
@click.option("--deep", is_flag=True, help="Decompress all batches to compute RATIO.")
@click.option(
    "--unread",
    is_flag=True,
    help="Print only topics that no group has committed offsets for, by the commits in the input: "
    "of consumer groups, share groups, and groups in ZooKeeper if its data directory is given too.",
)
@click.option(
    "--savings",
    is_flag=True,
    help="Print what other compression, larger batches or a shorter retention would save of each "
    "topic, estimated from a sample.",
)
@click.option(
    "--sample-size",
    metavar="SIZE",
    type=Size(),
    default="16MiB",
    show_default=True,
    help="How much of each topic --savings compresses: a larger sample has a smaller error.",
)
@shared.from_time_option("Print what came in a period from this time on, such as -7d")
@shared.until_time_option("Print what came in a period that ends before this time")
@table_format_option
@shared.processes_option
def ls(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    by: str,
    sort: str,
    quick: bool,
    deep: bool,
    unread: bool,
    savings: bool,
    sample_size: int,
    from_ms: int | None,
    until_ms: int | None,
    table_format: str,
    processes: int | None,
) -> None:
    """List topics, partitions or segments: sizes, offsets, times, codecs."""
    from kafkalog.command_line.ls.savings_table import SAVING_COLUMNS, saving_rows, write_savings
    from kafkalog.command_line.ls.storage_rows import storage_rows
    from kafkalog.command_line.ls.storage_tables import storage_columns, write_storage, write_usage
    from kafkalog.inspection.logs.replica_facts import replica_differences, replicated
    from kafkalog.inspection.metadata.assigned_partitions import (
        assignments,
        cluster_images,
        missing_replica_lines,
    )
    from kafkalog.inspection.metadata.current_topics import Doubles, find_logs
    from kafkalog.storage.log_dir.disk_usage import disk_usage
    from kafkalog.storage.log_dir.other_entries import absent_lines, other_entries
    from kafkalog.views.options.config_files import ConfigSources

    _refuse_together(by, sort, quick=quick, deep=deep, savings=savings)
    if by == _PRODUCER or from_ms is not None or until_ms is not None:
        _refuse_with_period(by, quick=quick, deep=deep, unread=unread, savings=savings)
        from kafkalog.command_line.ls.growth_table import write_growth

        write_growth(paths, topics, partitions, (from_ms, until_ms), by, table_format, processes)
        return
    printed_columns(
        SAVING_COLUMNS if savings else storage_columns(by, is_quick=quick, is_deep=deep)
    )
    paths, zookeeper = _without_zookeeper(paths, is_read=unread or savings)
    found = find_logs(paths, strict=False, doubles=Doubles.ALL)
    logs = logs_of_topics(paths, topics, partitions, found)
    put = print_text if table_format == "text" else print_note
    unread_lines: list[str] = []
    if unread:
        from kafkalog.command_line.ls.read_topics import unread_logs

        logs, unread_lines = unread_logs(logs, found, paths, zookeeper, processes)
    for line in _log_dir_lines(logs):
        put(line)
    # Names and sizes need no file to be opened.
    images = {} if unread or quick else cluster_images(found)
    is_whole = not topics and not partitions and not unread
    usages = disk_usage(logs, whole=is_whole) if is_whole or by == "kind" else []
    if by == "kind":
        write_usage(usages, sort, table_format)
    else:
        size = bytes_in(logs)
        with progress_bar(0 if quick else size * (_READS if savings else 1), "reading") as bar:
            rows = storage_rows(
                logs,
                is_quick=quick,
                is_deep=deep,
                processes=processes_for(size, processes),
                on_done=bar.update,
            )
            if savings:
                configs = ConfigSources(zookeeper=tuple(zookeeper)).of_logs(found)
                savable = saving_rows(
                    *(rows, configs, sample_size),
                    processes=processes_for(size, processes),
                    on_done=bar.update,
                )
        if savings:
            write_savings(savable, table_format)
        else:
            known = assignments(images) if by == "partition" else {}
            write_storage(rows, by, sort, table_format, known, is_quick=quick, is_deep=deep)
    copies = [*_copies_lines(logs)] if by == "topic" else []
    others = _other_lines(other_entries(logs)) if is_whole else ()
    totals = () if by == "kind" else _usage_lines(usages)
    absent = () if unread else absent_lines(paths, logs, topics, partitions)
    differences = in_order(
        lambda replicas: map(str, replica_differences(replicas)),
        [] if quick else replicated(logs),
        processes=processes_for(bytes_in(logs), processes),
    )
    assigned = missing_replica_lines(paths, found, images, topics, partitions)
    for line in (*copies, *others, *totals, *absent, *assigned, *differences, *unread_lines):
        put(line)


def _refuse_together(by: str, sort: str, *, quick: bool, deep: bool, savings: bool) -> None:
    if quick and deep:
        raise ConflictingOptionsError("--quick", "--deep")
    if quick and sort in ("records", "time"):
        raise ConflictingOptionsError("--quick", f"--sort {sort}")
    if savings and (quick or by != "topic"):
        raise ConflictingOptionsError("--savings", "--quick" if quick else f"--by {by}")


def _refuse_with_period(by: str, **others: bool) -> None:
    given = f"--by {_PRODUCER}" if by == _PRODUCER else "--from-time or --until-time"
    for name, is_given in others.items():
        if is_given:
            raise ConflictingOptionsError(f"--{name}", given)
    if by in ("segment", "kind"):
        raise ConflictingOptionsError(f"--by {by}", given)


def _usage_lines(usages: Iterable[DiskUsage]) -> Iterator[str]:
    """Sum up all files of each directory in a line, the largest kind first."""
    for directory, found in groupby(usages, key=lambda usage: usage.directory):
        kinds = list(found)
        size = sum(usage.size for usage in kinds)
        parts = ", ".join(f"{usage.kind} {size_text(usage.size)}" for usage in kinds)
        files = counted(sum(usage.files for usage in kinds), "file")
        yield f"in all: {directory}, {size_text(size)} in {files}: {parts}"


def _copies_lines(logs: Sequence[PartitionLog]) -> Iterator[str]:
    """Say that a row sums up several copies of its partitions, where it does."""
    copies = Counter(log.topic_partition for log in logs)
    several = sum(count > 1 for count in copies.values())
    if several:
        yield (
            f"{counted(several, 'partition')} of {len(copies):,} here in several copies: sizes, "
            "records and batches of a topic are those of all its copies together; --by partition "
            "shows each"
        )


def _other_lines(others: Iterable[OtherEntry]) -> Iterator[str]:
    """Describe the other entries, those of one kind together, with the first of their places."""
    alike: dict[str, dict[str, list[OtherEntry]]] = defaultdict(lambda: defaultdict(list))
    for other in others:
        alike[other.what][os.path.dirname(other.path)].append(other)
    for what, places in alike.items():
        names = [
            found[0].path if len(found) == 1 else f"{directory}: {len(found):,} entries"
            for directory, found in places.items()
        ]
        size = size_text(sum(other.size for found in places.values() for other in found))
        yield f"also there: {first_names(names, _MOST_PLACES)}, {size}: {what}"


def _without_zookeeper(patterns: Sequence[str], *, is_read: bool) -> tuple[list[str], list[str]]:
    """Return the paths without those of ZooKeeper's files, and these; unless they are read here, a
    line says what reads them."""
    from kafkalog.storage.files.files import matching_paths
    from kafkalog.zookeeper.data_dir import is_data_dir

    found: list[str] = []
    zookeeper: list[str] = []
    for pattern in patterns:
        paths = matching_paths(pattern)
        of_zookeeper = [path for path in paths if is_data_dir(path)]
        zookeeper += of_zookeeper
        for path in () if is_read else of_zookeeper:
            print_note(f'{path}: ZooKeeper files: read them with format("zookeeper") in Spark')
        found += [path for path in paths if path not in of_zookeeper] if of_zookeeper else [pattern]
    if not found:
        raise LogDirError(f"{', '.join(patterns)}: there are only ZooKeeper files")
    return found, zookeeper


def _log_dir_lines(logs: Sequence[PartitionLog]) -> Iterator[str]:
    """Describe each log directory in a line: its broker, and how that stopped."""
    by_path = {log.log_dir.path: log for log in logs if not log.is_named}
    for path in sorted(by_path):
        log_dir = by_path[path].log_dir
        own = [log for log in logs if log.log_dir.path == path]
        size = bytes_in(own)
        broker = "unknown broker" if log_dir.broker_id is None else f"broker {log_dir.broker_id}"
        cluster = f" of cluster {log_dir.cluster_id}" if log_dir.cluster_id else ""
        stop = "stopped cleanly" if log_dir.is_clean_shutdown else "running, or not stopped cleanly"
        held = f"{counted(len(own), 'partition')}, {size_text(size)}"
        yield f"{path}: {broker}{cluster}, {stop}; {held}"
