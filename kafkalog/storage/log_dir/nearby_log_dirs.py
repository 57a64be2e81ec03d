"""Log directories near a path that is not one, for the error message."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from os.path import basename, join
from typing import NamedTuple

from kafkalog.schemas import table_names
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import Directories
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.log_dir.table_formats import query_line, table_format

_LEVELS = 2
# A mistaken path can be a whole disk.
_MOST_LISTED = 200
_MOST_SHOWN = 5
_WHAT_IS_ONE = (
    "(a log directory has directories named <topic>-<partition>, a partition directory has "
    "<offset>.log, tiered storage has neither)"
)
_TABLES = "not a log directory, but a directory of tables that were written"
# What exports have read, beside the table that they wrote.
_RUNS = "ingest_manifest"


class NoLogDir(NamedTuple):
    """A path without logs: what it is, and the log directories below it."""

    path: str
    words: str
    below: Sequence[str] = ()


def no_log_dir_words(found: Sequence[NoLogDir]) -> str:
    """Return the message about paths without logs, at least one."""
    below = [each for one in found for each in one.below]
    if len(found) > 1 and all(one.below for one in found):
        paths = _shown([one.path for one in found])
        words = f"{paths}: not log directories; did you mean {_shown(below)} below them?"
    else:
        words = "; ".join(f"{one.path}: {one.words}" for one in found[:_MOST_SHOWN])
        if len(found) > _MOST_SHOWN:
            words += f"; and {len(found) - _MOST_SHOWN:,} more like these"
    return words if found[-1].words.startswith(_TABLES) else f"{words} {_WHAT_IS_ONE}"


def no_log_dir(
    directories: Directories,
    path: str,
    is_log_dir: Callable[[list[Entry]], bool],
    *,
    is_one_of_several: bool,
) -> NoLogDir:
    """Describe a path without logs: an empty directory, one with log directories one or two levels
    below, or one with tables; if there are none and the path is one of several, those beside it.

    Lists at most 200 directories; what cannot be listed is skipped.
    """
    if not _entries(directories, path):
        return NoLogDir(path, "an empty directory")
    below = _found(directories, path, is_log_dir, _LEVELS)
    if below:
        words = f"not a log directory; did you mean {_shown(below)} below it?"
        return NoLogDir(path, words, below)
    if tables := [*_tables(directories, path)]:
        return NoLogDir(path, _table_words(tables))
    # To list what is beside a remote path can be to list a whole bucket.
    looks_beside = is_one_of_several and not is_remote(path)
    beside = _found(directories, os.path.dirname(path), is_log_dir, 1) if looks_beside else []
    if beside:
        shown = _shown(beside)
        words = f"not a log directory, and there is none below it; did you mean {shown} beside it?"
        return NoLogDir(path, words)
    return NoLogDir(path, f"not a log directory, and there is none up to {_LEVELS} levels below it")


def _table_words(tables: list[tuple[str, str]]) -> str:
    shown = _shown([place for place, _ in tables])
    words = f"{_TABLES}: {shown}"
    records = [each for each in tables if basename(each[0]) != _RUNS]
    line = query_line(*(records or tables)[0])
    return words if line is None else f"{words}; to query one: {line}"


def _tables(directories: Directories, path: str) -> Iterator[tuple[str, str]]:
    """Yield the tables that a path is, or that are up to _LEVELS below it, with their formats."""
    level, listed = [path], 0
    for _ in range(_LEVELS + 1):
        following: list[str] = []
        for place in level:
            if listed == _MOST_LISTED:
                return
            listed += 1

            def names(folder: str, place: str = place) -> list[str]:
                return [entry.name for entry in _entries(directories, join(place, folder))]

            # Files alone are a table only where it has the name of one.
            found = table_format(names, is_marked=basename(place) not in table_names())
            if found is not None:
                yield place, found
            else:
                following += [*_children(directories, [place])]
        level = following


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


def _shown(paths: Sequence[str]) -> str:
    more = ["…"] if len(paths) > _MOST_SHOWN else []
    return ", ".join([*paths[:_MOST_SHOWN], *more])
