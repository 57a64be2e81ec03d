"""A new directory that is there as a whole or not at all, however the writing ends."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kafkalog.errors import LogDirError
from kafkalog.exit_codes import stopped_by_exceptions
from kafkalog.storage.files.output_files import (
    UNIQUE_CHARACTERS,
    Flush,
    existing_target,
    flush_directory,
    new_directory,
    unfinished_path,
)
from kafkalog.storage.files.uris import is_remote

_UNFINISHED = ".kafkalog-unfinished"
# Tasks on other machines may continue to write for a moment after a job has ended.
_REMOVALS = 50
_REMOVAL_PAUSE_S = 0.1

_logger = logging.getLogger(__name__)


@contextmanager
def whole_directory(path: str, flush: Flush) -> Iterator[str]:
    """A new directory to write into, beside `path`, that gets this name when everything is written.

    A run that fails or is stopped leaves nothing. The next one that writes to `path` removes what a
    killed process has left, unless it is still being written. Raises LogDirError as new_directory
    does.
    """
    if is_remote(path):
        raise LogDirError(f"{path}: a directory of this machine is written, not one of a store")
    target = os.path.abspath(path)
    if os.path.lexists(target):
        raise existing_target(path)
    scratch = unfinished_path(target, _UNFINISHED)
    for leftover in _leftovers(scratch):
        _remove_leftover(leftover)
    new_directory(scratch)
    lock = _lock(scratch)
    try:
        with stopped_by_exceptions():
            yield scratch
        flush_directory(scratch, flush)
        if os.path.lexists(target):
            raise existing_target(path)
        os.rename(scratch, target)
    except BaseException:
        _remove(scratch)
        raise
    finally:
        os.close(lock)
    flush_directory(os.path.dirname(target), flush)


def _lock(scratch: str) -> int:
    """Return a descriptor that locks the directory for as long as it is open. Raises LogDirError if
    another process was faster."""
    descriptor = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LogDirError(f"{scratch}: another process is writing it: wait for it to end") from None
    except OSError:
        pass  # a file system without locks
    return descriptor


def _leftovers(scratch: str) -> list[str]:
    """Return the names that differ from this directory's only in the random part."""
    directory, name = os.path.split(scratch)
    beginning = name[: -UNIQUE_CHARACTERS - len(_UNFINISHED)]
    try:
        return [
            os.path.join(directory, each)
            for each in os.listdir(directory)
            if each.startswith(beginning) and each.endswith(_UNFINISHED) and len(each) == len(name)
        ]
    except FileNotFoundError:
        return []


def _remove_leftover(scratch: str) -> None:
    """Remove what a process has left that was killed. Raises LogDirError for what another process
    is writing, and for what is not this user's own directory."""
    found = os.lstat(scratch)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise LogDirError(f"{scratch} is in the way: remove it or give another target")
    lock = _lock(scratch)
    try:
        shutil.rmtree(scratch)
    finally:
        os.close(lock)
    _logger.warning("%s: removed, an earlier run had not finished it", scratch)


def _remove(scratch: str) -> None:
    for _ in range(_REMOVALS):
        shutil.rmtree(scratch, ignore_errors=True)
        if not os.path.lexists(scratch):
            return
        time.sleep(_REMOVAL_PAUSE_S)
    _logger.warning("%s is not finished and could not be removed: remove it", scratch)
