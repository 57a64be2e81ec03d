"""Finding partitions and segments under the paths a user gives.

Files are listed, not opened, but for the small text files of a log directory and for logs that are
named by their own paths and have names of no broker.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from shlex import quote
from threading import Lock
from typing import TypeVar

from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.format.side_files.properties import read_properties
from kafkalog.log_lines import logger
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import (
    Directories,
    InputFile,
    is_directory,
    list_directory,
    matching_entries,
)
from kafkalog.storage.files.read_around import unreadable_reason
from kafkalog.storage.files.requests_at_once import answers
from kafkalog.storage.files.unreadable_input import note_deleted, note_unlisted
from kafkalog.storage.files.uris import absolute_path, is_remote
from kafkalog.storage.log_dir.former_topics import CurrentIds, no_ids_known, topics_apart
from kafkalog.storage.log_dir.listed_logs import listed_log, tiered_log
from kafkalog.storage.log_dir.nearby_log_dirs import NoLogDir, no_log_dir, no_log_dir_words
from kafkalog.storage.log_dir.same_partitions import refuse_doubles, with_tiered_beginnings
from kafkalog.storage.log_dir.tiered_storage import tiered_partitions
from kafkalog.storage.names import (
    CLEANER_OFFSETS,
    LOG_STARTS,
    RECOVERY_POINTS,
    REPLICATION_OFFSETS,
    any_base_offset,
    is_marked,
    oldest_base_offset,
    oldest_partition_name,
    partition_name,
    segment_file_name,
    snapshot_offset,
)
from kafkalog.storage.partition_log import LogDir, PartitionLog, SegmentFile, without_checkpoints

_CHECKPOINTS = (LOG_STARTS, REPLICATION_OFFSETS, CLEANER_OFFSETS, RECOVERY_POINTS)
META_PROPERTIES = "meta.properties"
_LOG_DIR_FILES = {META_PROPERTIES, *_CHECKPOINTS}
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

# How files begin that somebody has compressed, and what unpacks them.
_COMPRESSED = {
    b"\x1f\x8b": ("gzip", "gunzip -k"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"\xfd7zXZ\0": ("xz", "unxz -k"),
    b"BZh": ("bzip2", "bunzip2 -k"),
    b"\x04\x22\x4d\x18": ("lz4", "unlz4"),
    b"PK\3\4": ("zip", "unzip"),
}
_SIGNATURE_BYTES = max(map(len, _COMPRESSED))

_Read = TypeVar("_Read")
_logger = logger(__name__)


def with_segments_of_now(log: PartitionLog) -> PartitionLog:
    """Return the log with the live segments that its directory has now; none if it was deleted.
    Tasks that got a log without its segments need this."""
    try:
        entries = list_directory(log.path)
    except FileNotFoundError:
        return replace(log, segments=())
    return replace(log, segments=listed_log(log.path, entries, log.log_dir, log.path).segments)


def logs_of_now(paths: Sequence[str]) -> list[PartitionLog | None]:
    """Return for each partition directory its log as it is now, None where there is none. The
    files at the top of a log directory are read once for all of its logs; those that cannot be read
    are ignored."""
    log_dirs = _LogDirs(strict=False)

    def listed(path: str) -> PartitionLog | None:
        if not is_directory(path):
            return None
        found = _directory_search(path, log_dirs, False, False)
        return None if isinstance(found, NoLogDir) else found[0]

    return answers(listed, paths, str)


def find_partitions(
    paths: Sequence[str],
    *,
    strict: bool = True,
    current_ids: CurrentIds | None = no_ids_known,
    needed: str | None = None,
) -> list[PartitionLog]:
    """Return the partitions under the paths, sorted by topic and partition.

    A path is a log directory, a partition directory, a segment's log file, or a glob of these. A
    glob leaves out files that are not logs and, unless it ends in their mark, what is marked. With
    `strict`, a checkpoint file that cannot be read is an error; otherwise it is logged and ignored,
    as by brokers. Of several topics with one name those that do not have it by `current_ids` are
    named TOPIC@ID (docs/format.md F925); with None nothing tells their logs apart. Raises
    LogDirError if a path is none of these, or if a partition is found twice, one of topic `needed`
    where that is given.
    """
    files: dict[str, list[str]] = {}
    found = {entry.path: entry for pattern in paths for entry in input_entries(pattern)}
    for entry in found.values():
        if _is_beside_logs(entry):
            raise LogDirError(
                f"{entry.path}: not a log but a file beside logs: name a log's file, or a directory"
            )
        if not entry.is_directory and not _is_log_file(entry.name):
            _refuse_compressed(entry.path)
        if not entry.is_directory:
            files.setdefault(os.path.dirname(entry.path), []).append(entry.path)
    directories = [entry.path for entry in found.values() if entry.is_directory]
    log_dirs = _LogDirs(strict)

    def search(path: str) -> list[PartitionLog] | NoLogDir:
        return _directory_search(path, log_dirs, strict, len(found) > 1)

    in_directories = answers(search, directories, str)
    if others := [each for each in in_directories if isinstance(each, NoLogDir)]:
        raise LogDirError(no_log_dir_words(others))
    searches = [
        *(each for each in in_directories if not isinstance(each, NoLogDir)),
        *(_files_search(directory, named, log_dirs, strict) for directory, named in files.items()),
    ]
    logs = [log for found_logs in searches for log in found_logs]
    if current_ids is not None:
        logs = topics_apart(logs, current_ids)
    logs = with_tiered_beginnings(logs)
    refuse_doubles([log for log in logs if needed in (None, log.topic)])
    return sorted(logs, key=lambda log: (log.topic or "", log.partition or 0, log.path))


def read_log_dir(path: str) -> LogDir:
    """Return the contents of the files at the top of a log directory; those that cannot be read are
    ignored."""
    return _read_log_dir(Directories(), path, strict=False)


def input_entries(pattern: str) -> list[Entry]:
    """Return the directories and logs that a path means: itself, or what it matches as a glob."""
    entries = matching_entries(pattern)
    if [entry.path for entry in entries] != [absolute_path(pattern)]:
        entries = [entry for entry in entries if _is_meant(entry, pattern)]
    if not entries:
        place = "there" if is_remote(pattern) else "on this machine"
        raise LogDirError(f"{pattern}: no such file or directory {place}")
    return entries


def _is_meant(entry: Entry, pattern: str) -> bool:
    if is_marked(entry.name) and not is_marked(pattern):
        return False
    return entry.is_directory or _is_log_file(entry.name)


def _is_log_file(name: str) -> bool:
    return any_base_offset(name) is not None or oldest_base_offset(name) is not None


def _is_beside_logs(entry: Entry) -> bool:
    """Return whether a file's name says that it is not a log, although its bytes may look like
    one."""
    name = segment_file_name(entry.name)
    is_index = name is not None and name.kind != ".log"
    is_known = entry.name in _LOG_DIR_FILES or snapshot_offset(entry.name) is not None
    return not entry.is_directory and (is_index or is_known)


def _refuse_compressed(path: str) -> None:
    """Raise LogDirError for a file that somebody has compressed, by its first bytes."""
    with InputFile(path) as file:
        beginning = file.read_around(0, _SIGNATURE_BYTES)
    for signature, (name, command) in _COMPRESSED.items():
        if beginning.startswith(signature):
            if ".tar" in path or path.endswith(".tgz"):
                command = "tar -xf"
            raise LogDirError(
                f"{path} is compressed by {name} and not a log: unpack it first, with "
                f"{command} {quote(path)}"
            )


class _LogDirs:
    """The small files of log directories, each read once, whichever thread asks first."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._found: dict[str, LogDir] = {}
        self._locks: dict[str, Lock] = {}

    def at(self, path: str, directories: Directories) -> LogDir:
        """Return the files at the top of a log directory."""
        with self._locks.setdefault(path, Lock()):
            if path not in self._found:
                self._found[path] = _read_log_dir(directories, path, self._strict)
            return self._found[path]


def _directory_search(
    path: str, log_dirs: _LogDirs, strict: bool, is_one_of_several: bool
) -> list[PartitionLog] | NoLogDir:
    search = _Search(log_dirs, strict)
    other = search.add_directory(path, is_one_of_several=is_one_of_several)
    return search.found if other is None else other


def _files_search(
    directory: str, paths: list[str], log_dirs: _LogDirs, strict: bool
) -> list[PartitionLog]:
    search = _Search(log_dirs, strict)
    search.add_files(directory, paths)
    return search.found


class _Search:
    """What was found in one of the paths so far. What was listed goes with it: the names of a large
    log directory take more memory than all that is kept of them."""

    def __init__(self, log_dirs: _LogDirs, strict: bool) -> None:
        self._strict = strict
        self._directories = Directories()
        self._log_dirs = log_dirs
        self.found: list[PartitionLog] = []

    def _entries(self, path: str) -> list[Entry] | None:
        """Return the entries of a directory; None for one that cannot be read and is ignored."""
        try:
            return self._directories.entries(path)
        except OSError as error:
            reason = unreadable_reason(error)
            if reason is None:
                raise
        if self._strict:
            advice = "mode PERMISSIVE continues without this directory"
            raise LogDirError(f"{path} cannot be read: {reason} ({advice})")
        note_unlisted(path, reason)
        return None

    def _entries_left(self, path: str) -> list[Entry] | None:
        """Return the entries of a directory in another one; None, too, for one that was deleted
        meanwhile."""
        try:
            return self._entries(path)
        except FileNotFoundError:
            note_deleted(path)
            return None

    def add_directory(self, path: str, *, is_one_of_several: bool) -> NoLogDir | None:
        """Add the logs in a directory; return what it is instead where it has none."""
        entries = self._entries(path)
        if entries is None:
            return None
        tiered = tiered_partitions(self._directories, path, entries)
        self.found += [tiered_log(partition, path) for partition in tiered]
        if not tiered and _is_partition_dir(path, entries):
            log = listed_log(path, entries, self._log_dir(os.path.dirname(path)), path)
            self.found.append(replace(log, is_named=True))
            return None
        partitions = [
            entry.path for entry in entries if entry.is_directory and self._is_live(entry)
        ]
        if tiered and not partitions:
            return None
        has_partitions = self._add_partitions(partitions, path)
        if not has_partitions and not _LOG_DIR_FILES & {entry.name for entry in entries}:
            below = self._tiered_below(path, entries)
            if below:
                self.found += below
                return None
            return no_log_dir(
                self._directories, path, is_log_dir, is_one_of_several=is_one_of_several
            )
        return None

    def _add_partitions(self, partitions: list[str], path: str) -> bool:
        """Add the logs of a log directory; return whether there are any, also unlisted ones.
        A log directory in it can have the name of a partition, such as kafka-1."""
        log_dir, has_any = self._log_dir(path), False
        for partition in partitions:
            files = self._entries_left(partition)
            if files is not None and is_log_dir(files):
                continue
            has_any = True
            if files is not None:
                self.found.append(listed_log(partition, files, log_dir, path))
        return has_any

    def _tiered_below(self, path: str, entries: list[Entry]) -> list[PartitionLog]:
        """Return the logs in tiered storage one level below, where Kafka's own plug-in makes a
        folder; none where log directories are there too, which must be named."""
        found: list[PartitionLog] = []
        for entry in entries:
            files = self._entries_left(entry.path) if entry.is_directory else None
            if files is None:
                continue
            if is_log_dir(files):
                return []
            tiered = tiered_partitions(self._directories, entry.path, files)
            found += [tiered_log(partition, path) for partition in tiered]
        return found

    def add_files(self, directory: str, paths: list[str]) -> None:
        """Log files by their own paths: live segments, and marked ones or files of other names,
        for which the checkpoints do not hold."""
        entries, named = self._directories.entries(directory), set(paths)
        whole = listed_log(directory, entries, self._log_dir(os.path.dirname(directory)), "")
        whole = replace(whole, is_live=False, is_named=True)
        live = [
            replace(segment, input_path=segment.path)
            for segment in whole.segments
            if segment.path in named and not is_marked(segment.path)
        ]
        beside = named - {segment.path for segment in live}
        others = [
            SegmentFile(entry.path, any_base_offset(entry.name), None, entry.size, entry.path)
            for entry in entries
            if entry.path in beside
        ]
        others.sort(key=lambda segment: (segment.base_offset or 0, segment.path))
        if live:
            self.found.append(replace(whole, segments=tuple(live)))
        log_dir = without_checkpoints(whole.log_dir)
        # Such files need not belong to one log.
        self.found += [replace(whole, segments=(other,), log_dir=log_dir) for other in others]

    def _log_dir(self, path: str) -> LogDir:
        return self._log_dirs.at(path, self._directories)

    def _is_live(self, entry: Entry) -> bool:
        name = partition_name(entry.name)
        if name is None and oldest_partition_name(entry.name) is not None:
            found = self._entries_left(entry.path)
            return any(oldest_base_offset(file.name) is not None for file in found or ())
        return name is not None and not name.mark


def _is_partition_dir(path: str, entries: list[Entry]) -> bool:
    if any(_is_log_file(entry.name) for entry in entries):
        return True
    # An empty partition, rather than a log directory that is named like one, or a parent of some.
    is_partition = partition_name(os.path.basename(path)) is not None
    return (
        is_partition and not is_log_dir(entries) and not any(each.is_directory for each in entries)
    )


def is_log_dir(entries: Sequence[Entry]) -> bool:
    """Return whether these are the entries of a log directory, whatever its name. Rule: F958."""
    return any(
        entry.name in _LOG_DIR_FILES or (entry.is_directory and partition_name(entry.name))
        for entry in entries
    )


def _read_log_dir(directories: Directories, path: str, strict: bool) -> LogDir:
    meta = _read_small(directories, path, META_PROPERTIES, read_properties, strict)
    properties = {} if meta is None else meta.values
    broker_id = properties.get("node.id", properties.get("broker.id", ""))
    log_starts, high_watermarks, cleaned, recovery_points = (
        _read_small(directories, path, name, read_offset_checkpoint, strict)
        for name in _CHECKPOINTS
    )
    return LogDir(
        path=path,
        cluster_id=properties.get("cluster.id"),
        broker_id=int(broker_id) if re.fullmatch(r"-?[0-9]{1,9}", broker_id) else None,
        is_clean_shutdown=_is_there(directories, path, CLEAN_SHUTDOWN),
        log_starts=log_starts or {},
        high_watermarks=high_watermarks or {},
        recovery_points=recovery_points or {},
        cleaner_checkpoints=cleaned or {},
        has_cleaner_checkpoint=cleaned is not None,
    )


def _read_small(
    directories: Directories, directory: str, name: str, read: Callable[[str], _Read], strict: bool
) -> _Read | None:
    """Return the contents of a small text file, None if it is missing or ignored."""
    path = os.path.join(directory, name)
    try:
        text = directories.read_text(directory, name)
        return None if text is None else read(text)
    except CorruptDataError as error:
        place = "" if error.path else f"line {error.position}: "
        detail = f"{place}{error.detail}"
        if strict:
            advice = "mode PERMISSIVE continues without this file"
            raise LogDirError(f"{path}: {detail} ({advice})") from error
        _logger.warning("%s: %s; continuing without this file", path, detail)
        return None


def _is_there(directories: Directories, directory: str, name: str) -> bool:
    try:
        return directories.read_text(directory, name) is not None
    except CorruptDataError:
        return True
