"""Which files a ZooKeeper server's data directories hold. Rule: docs/zookeeper.md F403, F408."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kafkalog.errors import LogDirError
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import (
    is_directory,
    list_directory,
    matching_paths,
    readable_entries,
)
from kafkalog.storage.files.uris import is_remote

_SNAPSHOT = re.compile(r"snapshot\.(?P<zxid>[0-9a-f]{1,16})(?:\.gz|\.snappy)?")
_LOG = re.compile(r"log\.(?P<zxid>[0-9a-f]{1,16})")
# The folder that servers of every release make in dataDir and dataLogDir.
_VERSION_FOLDER = "version-2"


@dataclass(frozen=True, slots=True)
class ZookeeperFile:
    """A snapshot or log, and the zxid in its name."""

    zxid: int
    path: str


@dataclass(frozen=True, slots=True)
class DataDir:
    """The files of one server: `path` as it was given, both kinds of files by ascending zxid."""

    path: str
    snapshots: tuple[ZookeeperFile, ...]
    logs: tuple[ZookeeperFile, ...]

    @property
    def has_first_log(self) -> bool:
        """Whether the logs begin with the first transaction of all."""
        return bool(self.logs) and self.logs[0].zxid <= 1


def is_data_dir(path: str) -> bool:
    """Return whether a directory, or the folder that servers create in it, has files of
    ZooKeeper."""
    folder = _folder(path)
    entries = readable_entries(folder) if is_directory(folder) else []
    return bool(_named(entries, _SNAPSHOT) or _named(entries, _LOG))


def is_of_zookeeper(paths: Iterable[str]) -> bool:
    """Return whether any of the paths or globs names a data directory, or a file of one."""
    return any(
        is_data_dir(path) or _is_file(path) for pattern in paths for path in matching_paths(pattern)
    )


def _is_file(path: str) -> bool:
    name = os.path.basename(path)
    return any(each.fullmatch(name) and not is_directory(path) for each in (_SNAPSHOT, _LOG))


def find_data_dirs(paths: Iterable[str]) -> list[DataDir]:
    """Return the data directories of the servers that paths or globs name: each a `dataDir`, its
    folder `version-2`, or a file in it. A directory with snapshots only and one with logs only,
    given together, are the `dataDir` and `dataLogDir` of one server; one that is named twice counts
    once.

    Raises LogDirError for a path that holds nothing of ZooKeeper's, OSError for an unreadable one.
    """
    found: dict[str, DataDir] = {}
    for pattern in paths:
        matches = matching_paths(pattern)
        if not matches:
            raise LogDirError(f"{pattern} does not exist, and matches nothing as a glob")
        for path in matches:
            folder = _folder(path)
            place = folder if is_remote(folder) else os.path.realpath(folder)
            found.setdefault(place, _data_dir(path, folder))
    return _paired(list(found.values()))


def _folder(path: str) -> str:
    """Return the directory of the files that a path names, or the file itself."""
    below = os.path.join(path, _VERSION_FOLDER)
    return below if is_directory(below) else path


def _data_dir(path: str, folder: str) -> DataDir:
    if is_directory(folder):
        entries = list_directory(folder)
    else:
        entries = [Entry(os.path.basename(folder), folder, is_directory=False, size=0)]
    snapshots, logs = _named(entries, _SNAPSHOT), _named(entries, _LOG)
    if not snapshots and not logs:
        raise LogDirError(
            f"{path} holds no snapshot.* and no log.* of ZooKeeper: give a server's dataDir, its "
            "folder version-2, or dataDir and dataLogDir together"
        )
    return DataDir(path, snapshots, logs)


def _named(entries: Sequence[Entry], pattern: re.Pattern[str]) -> tuple[ZookeeperFile, ...]:
    files = [
        ZookeeperFile(int(match["zxid"], 16), entry.path)
        for entry in entries
        if not entry.is_directory and (match := pattern.fullmatch(entry.name)) is not None
    ]
    return tuple(sorted(files, key=lambda file: (file.zxid, file.path)))


def _paired(found: list[DataDir]) -> list[DataDir]:
    without_logs = [data_dir for data_dir in found if not data_dir.logs]
    only_logs = [data_dir for data_dir in found if not data_dir.snapshots]
    if not without_logs or not only_logs:
        return found
    if len(without_logs) > 1 or len(only_logs) > 1:
        listed = ", ".join(data_dir.path for data_dir in (*without_logs, *only_logs))
        raise LogDirError(
            f"which logs belong to which snapshots is not clear from {listed}: read one "
            "server at a time, its dataDir and its dataLogDir"
        )
    (snapshots,), (logs,) = without_logs, only_logs
    both = replace(snapshots, logs=logs.logs)
    others = [data_dir for data_dir in found if data_dir not in (snapshots, logs)]
    return [*others, both]
