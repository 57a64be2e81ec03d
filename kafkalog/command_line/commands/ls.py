"""`kafkalog ls`: what is in these log directories."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from kafkalog.command_line.inputs import (
    LOG_DIRS_MEANING,
    bytes_in,
    log_dirs_argument,
    logs_of_topics,
    partition_options,
)
from kafkalog.command_line.parallel import processes_for, processes_option
from kafkalog.command_line.terminal import progress_bar, say, table_format_option, tell
from kafkalog.errors import ConflictingOptionsError, LogDirError
from kafkalog.words import counted, size_text

if TYPE_CHECKING:
    from kafkalog.storage.log_dir.other_entries import OtherEntry
    from kafkalog.storage.partition_log import PartitionLog

_TOPICS, _PARTITIONS, _SEGMENTS = "topics", "partitions", "segments"
_MOST_OTHERS = 20

_EPILOG = f"""\
{LOG_DIRS_MEANING}
Told by batch headers: no payload is read and no checksum looked at. RECORDS are those in the files,
below the log start too; CONTROL-RECORDS, such as the ends of transactions, are not among them.
RATIO, with --deep, is how many bytes the batches would have without compression for each that they
have.

\b
Examples:
  kafkalog ls /var/lib/kafka/data
  kafkalog ls /var/lib/kafka/data --partitions --topic orders
  kafkalog ls /var/lib/kafka/data/orders-0 --segments
  kafkalog ls '/backup/broker-*' --quick --format json
"""


@click.command(epilog=_EPILOG)
@log_dirs_argument
@partition_options
@click.option("--topics", "table", flag_value=_TOPICS, default=True, help="A row per topic.")
@click.option("--partitions", "table", flag_value=_PARTITIONS, help="A row per partition.")
@click.option("--segments", "table", flag_value=_SEGMENTS, help="A row per segment.")
@click.option("--quick", is_flag=True, help="Names and sizes only: no file is opened.")
@click.option("--deep", is_flag=True, help="Decompress all batches, for RATIO.")
@table_format_option
@processes_option
def ls(
    log_dirs: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    table: str,
    quick: bool,
    deep: bool,
    table_format: str,
    processes: int | None,
) -> None:
    """List topics, or partitions or segments: sizes, offsets, times, codecs."""
    from kafkalog.command_line.ls.storage_rows import storage_rows
    from kafkalog.command_line.ls.storage_tables import write_storage
    from kafkalog.storage.log_dir.other_entries import absent_lines, other_entries

    if quick and deep:
        raise ConflictingOptionsError("--quick", "--deep")
    paths = _without_zookeeper(log_dirs)
    logs = logs_of_topics(paths, topics, partitions)
    is_text = table_format == "text"

    put = say if is_text else tell
    for line in _log_dir_lines(logs):
        put(line)
    size = bytes_in(logs)
    with progress_bar(0 if quick else size, "reading") as bar:
        rows = storage_rows(
            logs,
            is_quick=quick,
            is_deep=deep,
            processes=processes_for(size, processes),
            on_done=bar.update,
        )
    write_storage(rows, table, table_format, is_quick=quick, is_deep=deep)
    others = () if topics or partitions else _other_lines(other_entries(logs))
    for line in (*others, *absent_lines(paths, logs, topics, partitions)):
        put(line)


def _other_lines(others: Iterable[OtherEntry]) -> Iterator[str]:
    """What else is there, the like in one directory together."""
    alike: dict[tuple[str, str], list[OtherEntry]] = defaultdict(list)
    for other in others:
        alike[os.path.dirname(other.path), other.what].append(other)
    for number, ((directory, what), found) in enumerate(alike.items()):
        if number == _MOST_OTHERS:
            yield f"also there: the like in {len(alike) - number:,} more places"
            return
        place = found[0].path if len(found) == 1 else f"{directory}: {len(found):,} entries"
        yield f"also there: {place}, {size_text(sum(each.size for each in found))}: {what}"


def _without_zookeeper(log_dirs: Sequence[str]) -> list[str]:
    """The paths but for those of ZooKeeper's files, of which it is said where they are read."""
    from kafkalog.storage.files.files import matching_paths
    from kafkalog.zookeeper.data_dir import is_data_dir

    found: list[str] = []
    for pattern in log_dirs:
        paths = matching_paths(pattern)
        of_zookeeper = [path for path in paths if is_data_dir(path)]
        for path in of_zookeeper:
            tell(f'{path}: files of ZooKeeper, which format("zookeeper") reads in Spark')
        found += [path for path in paths if path not in of_zookeeper] if of_zookeeper else [pattern]
    if not found:
        raise LogDirError(f"{', '.join(log_dirs)}: nothing but files of ZooKeeper there")
    return found


def _log_dir_lines(logs: Sequence[PartitionLog]) -> Iterator[str]:
    """A line for each log directory: whose it is, and how its broker stopped."""
    by_path = {log.log_dir.path: log for log in logs if not log.is_named}
    for path in sorted(by_path):
        log_dir = by_path[path].log_dir
        own = [log for log in logs if log.log_dir.path == path]
        size = bytes_in(own)
        broker = "no broker named" if log_dir.broker_id is None else f"broker {log_dir.broker_id}"
        cluster = f" of cluster {log_dir.cluster_id}" if log_dir.cluster_id else ""
        stop = "stopped cleanly" if log_dir.is_clean_shutdown else "running, or not stopped cleanly"
        held = f"{counted(len(own), 'partition')}, {size_text(size)}"
        yield f"{path}: {broker}{cluster}, {stop}; {held}"
