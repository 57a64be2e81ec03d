"""Log directories near a path that is not one, for the error message."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import Directories
from kafkalog.storage.files.uris import is_remote

_LEVELS = 2
# A mistaken path can be a whole disk.
_MOST_LISTED = 200
_MOST_SHOWN = 5


def nearby_log_dirs(
    directories: Directories,
    path: str,
    is_log_dir: Callable[[list[Entry]], bool],
    *,
    is_one_of_several: bool,
) -> str:
    """Describe a path without logs: an empty directory, or one with log directories one or two
    levels below; if there are none and the path is one of several, those beside it.

    Lists at most 200 directories; what cannot be listed is skipped.
    """
    if not _entries(directories, path):
        return "an empty directory"
    below = _found(directories, path, is_log_dir, _LEVELS)
    if below:
        return f"not a log directory; did you mean {_shown(below)} below it?"
    # To list what is beside a remote path can be to list a whole bucket.
    looks_beside = is_one_of_several and not is_remote(path)
    beside = _found(directories, os.path.dirname(path), is_log_dir, 1) if looks_beside else []
    if beside:
        shown = _shown(beside)
        return f"not a log directory, and there is none below it; did you mean {shown} beside it?"
    return f"not a log directory, and there is none up to {_LEVELS} levels below it"


def _found(
    directories: Directories, path: str, is_log_dir: Callable[[list[Entry]], bool], levels: int
) -> list[str]:
    """Return the log directories up to `levels` below a path."""
    found: list[str] = []
    level, listed = [path], 0
    for _ in range(levels):
        following: list[str] = []
        for child in _children(directories, level):
            if listed == _MOST_LISTED:
                return found
            listed += 1
            (found if is_log_dir(_entries(directories, child)) else following).append(child)
        level = following
    return found


def _children(directories: Directories, paths: list[str]) -> Iterator[str]:
    for path in paths:
        yield from (entry.path for entry in _entries(directories, path) if entry.is_directory)


def _entries(directories: Directories, path: str) -> list[Entry]:
    try:
        return directories.entries(path)
    except OSError:
        return []


def _shown(paths: list[str]) -> str:
    more = ["…"] if len(paths) > _MOST_SHOWN else []
    return ", ".join([*paths[:_MOST_SHOWN], *more])
