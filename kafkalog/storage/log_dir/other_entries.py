"""What log directories contain beside live segments and the files that belong to them.

Rules: docs/format.md F91 to F94.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import (
    entries_left,
    is_directory,
    readable_entries,
    special_entries,
)
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.log_dir import (
    CLEAN_SHUTDOWN,
    META_PROPERTIES,
    input_entries,
    is_log_dir,
    read_log_dir,
)
from kafkalog.storage.log_dir.metadata_snapshots import BOOTSTRAP, is_metadata_snapshot
from kafkalog.storage.log_dir.segment_files import MARKED_DIRECTORIES
from kafkalog.storage.log_dir.tiered_storage import is_beside_tiered_log
from kafkalog.storage.names import (
    CLEANER_OFFSETS,
    LOG_STARTS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
    any_base_offset,
    oldest_base_offset,
    partition_name,
    segment_file_name,
    snapshot_offset,
)
from kafkalog.storage.partition_log import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    LogDir,
    PartitionLog,
    is_selected,
)
from kafkalog.storage.recovery.temporary_files import CLEANED, DELETED, SWAP
from kafkalog.words import counted, first_names, printable

# Where brokers keep indexes of tiered segments.
INDEX_CACHE = "remote-log-index-cache"
OF_LOG_DIRS = frozenset(
    {
        *(META_PROPERTIES, CLEAN_SHUTDOWN, LOG_STARTS, REPLICATION_OFFSETS, CLEANER_OFFSETS),
        *(RECOVERY_POINTS, ".lock", BOOTSTRAP, INDEX_CACHE),
    }
)
OF_PARTITIONS = frozenset((LEADER_EPOCHS, PARTITION_METADATA, "quorum-state"))
# So many partitions are named that have no directory.
MOST_ABSENT = 5
_UNKNOWN = "not a file that brokers write"
_COMPRESSED = "a log that was compressed: nothing reads it until it is unpacked"
_COMPRESSED_ENDINGS = (".gz", ".zst", ".xz", ".bz2", ".lz4", ".zip")
_MARKED = {
    DELETED: "removed by retention, the cleaner or a truncation",
    CLEANED: "a cleaning that was not finished",
    SWAP: "cleaned, and not yet in its place",
}


class OtherEntry(NamedTuple):
    """A file or a directory with all that is directly in it: how many bytes, and what it is."""

    path: str
    size: int
    what: str


def other_entries(logs: Sequence[PartitionLog]) -> Iterator[OtherEntry]:
    """Yield the other entries of the log directories and of the directories of these logs; for logs
    that were given by their own paths only of the latter, and none beside files that were given one
    by one."""
    logs = [log for log in logs if not log.given_files]
    paths = {log.path for log in logs}
    for path in sorted({log.log_dir.path for log in logs if not log.is_named}):
        for entry in entries_left(path):
            if entry.path not in paths and entry.name not in OF_LOG_DIRS:
                yield OtherEntry(entry.path, _size(entry), _what(entry))
        yield from _special(path)
    for path in sorted(paths):
        yield from _in_partition(path)
        yield from _special(path)


def unread_entries(logs: Sequence[PartitionLog]) -> Iterator[OtherEntry]:
    """Yield the entries that have the name of a Kafka file or directory but are neither regular
    files nor directories, in the directories of these logs and beside them, and logs that were
    compressed."""
    logs = [log for log in logs if not log.given_files]
    paths = {log.path for log in logs} | {log.log_dir.path for log in logs if not log.is_named}
    for path in sorted(paths):
        for entry in _special(path):
            name = os.path.basename(entry.path)
            is_segment_file = segment_file_name(name) is not None
            if is_segment_file or partition_name(name) or name in OF_LOG_DIRS or _is_known(name):
                yield entry
        for file in readable_entries(path, entries_left):
            if _is_compressed(file.name):
                yield OtherEntry(file.path, file.size, _COMPRESSED)


def absent_partitions(
    paths: Sequence[str], logs: Sequence[PartitionLog]
) -> Iterator[tuple[str, list[TopicPartition]]]:
    """Yield the log directories, of those among the paths, whose checkpoints name partitions that
    have no directory there, with these partitions: moved, left out of a copy, or lost. `logs` are
    those that were found under the paths."""
    here = partitions_here(logs)
    listed = {log.path for log in logs}
    for path, log_dir in sorted(given_log_dirs(paths, logs).items()):
        recorded = (log_dir.high_watermarks.keys() | log_dir.recovery_points.keys()) - here[path]
        absent = [
            each
            for each in sorted(recorded)
            # A log under another name of its topic (docs/format.md F925) is there.
            if directory_of(path, each) not in listed and not is_unreadable(path, each)
        ]
        if absent:
            yield path, absent


def given_log_dirs(paths: Sequence[str], logs: Sequence[PartitionLog]) -> dict[str, LogDir]:
    """Return the log directories among the paths; `logs` are those that were found under them."""
    log_dirs = {log.log_dir.path: log.log_dir for log in logs if not log.is_named}
    # Without partitions, no log names the directory.
    known = log_dirs.keys() | {log.path for log in logs}
    given = (entry for path in paths for entry in input_entries(path) if entry.is_directory)
    return log_dirs | {
        entry.path: read_log_dir(entry.path) for entry in given if entry.path not in known
    }


def partitions_here(logs: Sequence[PartitionLog]) -> Mapping[str, set[TopicPartition | None]]:
    """Return the partitions of these logs by the paths of their log directories."""
    here: defaultdict[str, set[TopicPartition | None]] = defaultdict(set)
    for log in logs:
        here[log.log_dir.path].add(log.topic_partition)
    return here


def is_unreadable(path: str, partition: TopicPartition) -> bool:
    """Return whether a partition's directory exists that was not found because it cannot be
    listed."""
    return not is_remote(path) and is_directory(directory_of(path, partition))


def directory_of(path: str, partition: TopicPartition) -> str:
    """Return where a log directory has a partition, if it has it."""
    topic, number = partition
    return os.path.join(path, f"{topic}-{number}")


def absent_lines(
    paths: Sequence[str],
    logs: Sequence[PartitionLog],
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
) -> Iterator[str]:
    """Yield a line for each log directory with partitions that only its checkpoints list (of the
    given partitions, if any); `logs` are all or those of these."""
    for path, absent in absent_partitions(paths, logs):
        names = [
            f"{topic}-{partition}"
            for topic, partition in absent
            if is_selected(topic, partition, topics, partitions)
        ]
        if names:
            yield absent_line(path, names)


def absent_line(path: str, names: Sequence[str]) -> str:
    """Return the line for a log directory that lacks these partitions."""
    return printable(
        f"missing: {counted(len(names), 'partition')} that the checkpoints of {path} "
        f"name: {first_names(names, MOST_ABSENT)}"
    )


def side_bytes(log: PartitionLog) -> int:
    """Return the bytes of indexes, producer snapshots and similar files in a log's directory; for
    files that were given one by one, of the files with their names."""
    live = {segment.path for segment in log.segments}
    others = live | {entry.path for entry in _in_partition(log.path)}
    beside = [entry for entry in entries_left(log.path) if entry.path not in others]
    if log.given_files:
        stems = {os.path.basename(path).split(".")[0] for path in live}
        beside = [entry for entry in beside if entry.name.split(".")[0] in stems]
    return sum(entry.size for entry in beside)


def _special(path: str) -> Iterator[OtherEntry]:
    for entry in special_entries(path):
        yield OtherEntry(entry.path, 0, f"{entry.special}: only regular files are read")


def _size(entry: Entry) -> int:
    if not entry.is_directory:
        return entry.size
    return sum(each.size for each in entries_left(entry.path, readable_entries))


def _what(entry: Entry) -> str:
    if entry.is_directory and is_log_dir(readable_entries(entry.path)):
        return "another log directory: give it as well to read it"
    name = partition_name(entry.name) if entry.is_directory else None
    if name is None:
        return _UNKNOWN
    return MARKED_DIRECTORIES[name.mark] if name.mark else "a partition that cannot be read"


def _in_partition(path: str) -> Iterator[OtherEntry]:
    for entry in entries_left(path):
        segment_file = None if entry.is_directory else segment_file_name(entry.name)
        if segment_file is not None and segment_file.mark:
            yield OtherEntry(entry.path, entry.size, _MARKED[segment_file.mark])
        elif segment_file is None and (entry.is_directory or not _is_known(entry.name)):
            is_deleted = _is_known(entry.name.removesuffix(DELETED))
            what = _COMPRESSED if _is_compressed(entry.name) else _UNKNOWN
            what = _MARKED[DELETED] if is_deleted else what
            yield OtherEntry(entry.path, _size(entry), what)


def _is_compressed(name: str) -> bool:
    stem, ending = os.path.splitext(name)
    return ending in _COMPRESSED_ENDINGS and any_base_offset(stem) is not None


def _is_known(name: str) -> bool:
    return (
        name in OF_PARTITIONS
        or snapshot_offset(name) is not None
        or oldest_base_offset(name) is not None
        or is_metadata_snapshot(name)
        or is_beside_tiered_log(name)
    )
