"""Which files a dump reads, in which order, and in which parts."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kafkalog.columns.batches.segment_parts import parts_by_bytes
from kafkalog.command_line.dump.request import DumpRequest
from kafkalog.command_line.dump.side_files import KNOWN, side_file_kind
from kafkalog.command_line.inputs import missing_topics_explained, with_topics
from kafkalog.errors import LogDirError, OptionError, UnsupportedFormatError
from kafkalog.format.batch_header import MAGIC_POSITION, MAGICS
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.metadata.current_topics import current_topic_ids
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import InputFile, entries_left, matching_entries
from kafkalog.storage.files.uris import absolute_path
from kafkalog.storage.log_dir.former_topics import topics_apart
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.log_dir.metadata_snapshots import BOOTSTRAP, is_metadata_snapshot, snapshot_in
from kafkalog.storage.log_dir.other_entries import OF_LOG_DIRS
from kafkalog.storage.log_dir.read_directories import refuse_inputs, refuse_inside
from kafkalog.storage.names import CLUSTER_METADATA, any_base_offset, partition_name
from kafkalog.storage.partition_log import PartitionLog, is_selected, those_of
from kafkalog.storage.reading.index_lookup import start_position
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.read_plan import SegmentRead, segment_reads
from kafkalog.views.parallel import processes_for

# What one process dumps at a time: its text is mostly less than a process holds until its turn,
# even if the records are compressed to a fifth.
_PART_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class LogItem:
    """A log file, or a part of one: the first part has a `heading`, and earlier parts have the
    batches up to the one at `resume_position`."""

    read: SegmentRead
    heading: str
    resume_position: int = -1

    @property
    def size(self) -> int:
        return self.read.size

    @property
    def path(self) -> str:
        return self.read.path


@dataclass(frozen=True)
class SideItem:
    """A file beside logs."""

    path: str
    size: int


Item = LogItem | SideItem
# By the given directory or log file.
_Logs = Mapping[str, list[PartitionLog]]


def planned(request: DumpRequest) -> list[Item]:
    """Return the files under the paths, in the order of the output; a file that is given twice, by
    itself and with its directory, is dumped once.

    Raises LogDirError for a missing path or a file that is not one of Kafka's, OptionError if
    there is nothing to dump.
    """
    entries = {path: _entries(path) for path in request.paths}
    logs = _logs(request, [entry for found in entries.values() for entry in found])
    named = _logs_of_files(entry.path for found in entries.values() for entry in found)
    items: list[Item] = []
    before: set[str] = set()
    for path in request.paths:
        found = list(_under(path, entries[path], {**logs, **named}, request))
        items += [item for item in found if item.path not in before]
        before.update(item.path for item in found)
    if not items:
        raise OptionError("PATH", ", ".join(request.paths), "paths with a file to dump")
    return items


def refuse_outputs(request: DumpRequest, files: Iterable[str]) -> None:
    """Raise OptionError for an output that is one of the files, under any name, that is in an input
    directory, or that has the name of a Kafka file."""
    output = request.output or ""
    given = [entry for path in request.paths for entry in matching_entries(path)]
    read = [*files, *(entry.path for entry in given if not entry.is_directory)]
    partitions = {os.path.dirname(path) for path in read}
    directories = {path for path in partitions if partition_name(os.path.basename(path))}
    directories.update(entry.path for entry in given if entry.is_directory)
    refuse_inputs("--output", output, read)
    refuse_inside("--output", output, sorted(directories), what="file")
    target = os.path.realpath(output)
    if _is_known(target):
        name = os.path.basename(target)
        raise OptionError("--output", output, f"a file with another name: {name} is one of Kafka's")


def _is_known(path: str) -> bool:
    """Return whether dump reads files of this name."""
    name = os.path.basename(path)
    return _is_snapshot(name) or _is_log(path) or side_file_kind(path) is not None


def _entries(path: str) -> list[Entry]:
    entries = matching_entries(path)
    if not entries:
        raise LogDirError(f"{path}: there is no such file or directory")
    return entries


def _logs(request: DumpRequest, entries: list[Entry]) -> _Logs:
    """Return the logs of the requested topics and partitions in each directory."""
    directories = dict.fromkeys(entry.path for entry in entries if entry.is_directory)
    found = {path: find_partitions([path], strict=False) for path in directories}
    # By the directories together: which of several topics has a name now shows only there.
    all_logs = topics_apart([log for logs in found.values() for log in logs], current_topic_ids)
    if request.topics or request.partitions:
        named = _logs_of_files([entry.path for entry in entries if not entry.is_directory])
        all_logs += [log for logs in named.values() for log in logs]
    wanted = request.topics, request.partitions
    with missing_topics_explained([*directories], all_logs, *wanted):
        chosen = with_topics(all_logs, *wanted)
    _refuse_unknown(request.bounds.by_partition, all_logs)
    by_path = {log.path: log for log in chosen}
    return {
        path: [by_path[log.path] for log in logs if log.path in by_path]
        for path, logs in found.items()
    }


def _refuse_unknown(partitions: Iterable[TopicPartition], logs: Iterable[PartitionLog]) -> None:
    missing = sorted(set(partitions) - {log.topic_partition for log in logs})
    if missing:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in missing)
        raise OptionError("--offsets", names, "partitions that the paths have")


def _under(path: str, entries: list[Entry], logs: _Logs, request: DumpRequest) -> Iterator[Item]:
    for entry in entries:
        is_named = entry.path == absolute_path(path)
        if entry.is_directory:
            yield from _of_directory(entry, logs[entry.path], request)
        elif (items := _of_file(entry, logs, request, is_named=is_named)) is not None:
            yield from items
        elif is_named:
            # Refuses what somebody has compressed.
            own = {entry.path: find_partitions([entry.path], strict=False)}
            if not _looks_like_log(entry):
                raise LogDirError(
                    f"{entry.path}: dump does not know a file of this name; it knows <offset>.log, "
                    f"<offset>-<epoch>.checkpoint, {', '.join(KNOWN)}"
                )
            yield from _of_log_file(entry.path, own, request)


def _looks_like_log(file: Entry) -> bool:
    """Return whether a file of no broker's name can be a log: by its ending, or as it begins with
    a batch or a message."""
    if file.name.endswith(".log"):
        return True
    with InputFile(file.path) as opened:
        beginning = opened.read_around(0, MAGIC_POSITION + 1)
    return len(beginning) > MAGIC_POSITION and beginning[MAGIC_POSITION] in MAGICS


def _of_directory(directory: Entry, logs: list[PartitionLog], request: DumpRequest) -> list[Item]:
    """Return the files of a directory, logs first: a limit counts batches and records."""
    found = _all_of_directory(directory, logs, request)
    return sorted(found, key=lambda item: isinstance(item, SideItem))


def _all_of_directory(
    directory: Entry, logs: list[PartitionLog], request: DumpRequest
) -> Iterator[Item]:
    is_some = bool(request.topics or request.partitions)
    if not is_some and directory.path not in [log.path for log in logs]:
        yield from _files_beside(directory.path, request)
    for log in logs:
        reads = {read.path: read for read in _reads(log, request)}
        if log.tiered_topic_id is not None:
            for read in reads.values():
                yield from _parts_of(read)
            continue
        files = entries_left(log.path)
        named = _logs_of_files(file.path for file in files if any_base_offset(file.name) is None)
        for file in files:
            if file.path in reads:
                yield from _parts_of(reads[file.path])
            elif any_base_offset(file.name) is None and not file.is_directory:
                yield from _of_file(file, named, request) or ()


def _files_beside(directory: str, request: DumpRequest) -> Iterator[Item]:
    files = [file for file in entries_left(directory) if not file.is_directory]
    logs = _logs_of_files(file.path for file in files)
    for file in files:
        yield from _of_file(file, logs, request) or ()


def _of_file(
    file: Entry, logs: _Logs, request: DumpRequest, *, is_named: bool = False
) -> list[Item] | None:
    """Return the items of a file, None for an unknown name; `logs` has the logs of log files.
    `is_named`: the file was given by its own path; otherwise tables leave it out, because its rows
    would mix with those of logs."""
    path, size = file.path, file.size
    if _is_log(path):
        return _of_log_file(path, logs, request)
    if _is_snapshot(file.name):
        is_left_out = request.asks_for_some or (request.is_table and not is_named)
        if is_left_out or not _is_requested_beside(path, request):
            return []
        return [LogItem(_snapshot_read(path, size), _heading(file.name))]
    if side_file_kind(path) is not None:
        is_left_out = request.asks_for_some or request.is_table
        return (
            [] if is_left_out or not _is_requested_beside(path, request) else [SideItem(path, size)]
        )
    return None


def _of_log_file(path: str, logs: _Logs, request: DumpRequest) -> list[Item]:
    chosen = those_of(logs.get(path, ()), request.topics, request.partitions)
    return [item for log in chosen for read in _reads(log, request) for item in _parts_of(read)]


def _is_log(path: str) -> bool:
    name = os.path.basename(path)
    return any_base_offset(name) is not None or name.endswith(".kafka")


def _logs_of_files(paths: Iterable[str]) -> dict[str, list[PartitionLog]]:
    """Return the log of each log file, with only that file. Lists each directory once."""
    by_directory: dict[str, list[str]] = defaultdict(list)
    for path in filter(_is_log, paths):
        by_directory[os.path.dirname(path)].append(path)
    found: dict[str, list[PartitionLog]] = defaultdict(list)
    for files in by_directory.values():
        for log in find_partitions(files, strict=False):
            for segment in log.segments:
                found[segment.path].append(replace(log, segments=(segment,)))
    return found


def _is_requested_beside(path: str, request: DumpRequest) -> bool:
    directory, file_name = os.path.split(path)
    topic, partition = None, None
    if _is_snapshot(file_name):
        topic, partition = CLUSTER_METADATA, 0
    elif file_name not in OF_LOG_DIRS:  # the name of a log directory can look like a partition's
        name = partition_name(os.path.basename(directory))
        topic, partition = (None, None) if name is None else (name.topic, name.partition)
    return is_selected(topic, partition, request.topics, request.partitions)


def _is_snapshot(name: str) -> bool:
    return name == BOOTSTRAP or is_metadata_snapshot(name)


def log_items(log: PartitionLog, request: DumpRequest) -> Iterator[LogItem]:
    """Yield the segments of a log that can hold requested offsets, as whole files."""
    for read in _reads(log, request):
        yield LogItem(read, _heading(os.path.basename(read.path)))


def _reads(log: PartitionLog, request: DumpRequest) -> Iterator[SegmentRead]:
    """Yield the segments that can hold requested offsets, including those below the log start
    offset that are not yet deleted."""
    if is_oldest_layout(log):
        raise UnsupportedFormatError(
            f"{log.path} has files of Kafka 0.7's layout, which kafka-dump-log cannot read "
            "either: read them with view records of the Spark source"
        )
    offsets = request.bounds.of_partition((log.topic, log.partition))
    for read in segment_reads(log, offsets) if offsets is not None else ():
        begins = start_position(read.path, read.first_offset) if read.first_offset else 0
        yield replace(read, start_position=begins)


def _snapshot_read(path: str, size: int) -> SegmentRead:
    """Return the read of a snapshot of KRaft's metadata, whose offsets count from 0."""
    return SegmentRead(
        path=path,
        topic=CLUSTER_METADATA,
        partition=0,
        base_offset=None,
        next_base_offset=None,
        size=size,
        first_offset=0,
        end_offset=LARGEST_OFFSET,
    )


def _parts_of(read: SegmentRead) -> Iterator[LogItem]:
    """Yield the parts of a file, equally many for each process."""
    processes = processes_for(read.size, None)
    count = processes * max(-(-read.size // (_PART_BYTES * processes)), 1)
    heading = _heading(os.path.basename(read.path))
    before = -1
    for part in parts_by_bytes(read, max(-(-read.size // count), 1)):
        yield LogItem(part, heading, before)
        heading, before = "", part.next_position or -1


def _heading(name: str) -> str:
    snapshot = snapshot_in(name)
    if snapshot is not None:
        return f"Snapshot end offset: {snapshot.end_offset}, epoch: {snapshot.leader_epoch}"
    if name == BOOTSTRAP:
        return "KRaft bootstrap snapshot"
    base_offset = any_base_offset(name)
    return "" if base_offset is None else f"Log starting offset: {base_offset}"
