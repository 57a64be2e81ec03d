"""Writing files of a log directory of one's own: always new ones, never over what is there; and
small files that tell where a job has got to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafkalog.errors import LogDirError, OptionError

# What only brokers leave in a directory: nothing of ours goes beside it.
_BROKER_FILES = (".lock", "meta.properties")

# Forces what was written through a descriptor to disk.
Flush = Callable[[int], None]


def refuse_unwritable(option: str, directory: str) -> None:
    """Raise OptionError for a local directory that is none, cannot be made, or may not be written
    to: to be asked before the work that it is for."""
    found = os.path.abspath(directory)
    while not os.path.lexists(found):
        found = os.path.dirname(found)
    if not os.path.isdir(found):
        raise OptionError(option, directory, f"a directory, or a path for one: {found} is a file")
    if not os.access(found, os.W_OK | os.X_OK):
        raise OptionError(option, directory, f"where one may write: not so in {found}")


def new_directory(path: str) -> None:
    """Make a directory that nothing was in, its parents as well.

    Raises LogDirError where it exists, or would lie in or below a broker's log directory.
    """
    parent = os.path.dirname(os.path.realpath(path))
    names: tuple[str, ...] = _BROKER_FILES
    while parent != os.path.dirname(parent):
        if any(os.path.exists(os.path.join(parent, name)) for name in names):
            raise LogDirError(
                f"{path}: {parent} is a broker's log directory, nothing is written there"
            )
        # Further up a lock can be anybody's.
        parent, names = os.path.dirname(parent), _BROKER_FILES[1:]
    try:
        os.makedirs(path)
    except FileExistsError:
        raise _existing(path) from None


def _existing(path: str) -> LogDirError:
    return LogDirError(f"{path} exists: kafkalog writes to new directories only")


@contextmanager
def whole_directory(path: str, flush: Flush) -> Iterator[str]:
    """A new directory to write into, beside `path`, that takes this name when all is written: what
    fails on the way leaves nothing there. Raises LogDirError as new_directory does."""
    target = os.path.abspath(path)
    scratch = f"{target}.tmp"
    new_directory(scratch)
    try:
        if os.path.lexists(target):
            raise _existing(path)
        yield scratch
        flush_directory(scratch, flush)
        os.rename(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    flush_directory(os.path.dirname(target), flush)


class OutputFile:
    """A new file that grows at its end. Raises FileExistsError where there is one already."""

    def __init__(self, path: str) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(path, flags, 0o644)
        self.size = 0

    def append(self, data: bytes) -> None:
        """Write all of `data` behind what is there."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.size += len(data)

    def flush(self, flush: Flush) -> None:
        """Force what was written to disk."""
        flush(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def write_file(path: str, data: bytes, flush: Flush) -> None:
    """A small file in place of one of that name, never seen half written."""
    scratch = f"{path}.tmp"
    file = OutputFile(scratch)
    try:
        file.append(data)
        file.flush(flush)
    finally:
        file.close()
    os.replace(scratch, path)


def flush_directory(path: str, flush: Flush) -> None:
    """Force the names of a directory's files to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        flush(descriptor)
    finally:
        os.close(descriptor)


def replace_text(path: str, text: str) -> None:
    """Write a small text file, which is there as it was or as it is to be at any moment."""
    scratch = f"{path}.tmp"
    with open(scratch, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, path)
