"""Only regular files are opened. A pipe or a device can keep a reader waiting, or never end.

What is neither a regular file nor a directory counts as absent, and stderr says so once.
Rule: docs/format.md F88.
"""

from __future__ import annotations

import errno
import os
import stat

from kafkalog.errors import CorruptDataError
from kafkalog.format.faults import Fault
from kafkalog.log_lines import logger

DIRECTORY = "a directory"
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: DIRECTORY,
}
_logger = logger(__name__)
_named: set[str] = set()


def kind_of(mode: int) -> str | None:
    """Describe a file by its mode if it is not a regular file."""
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "a special file")


def link_kind(error: OSError) -> str:
    """Describe a link that cannot be followed."""
    return f"a link that leads nowhere ({os.strerror(error.errno or 0)})"


def open_regular(path: str) -> int:
    """Open a regular file for reading and return its descriptor. Raises FileNotFoundError for
    another kind of file, without opening it, and without waiting if it has just become one."""
    try:
        _refuse_special(path, os.stat(path).st_mode)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        note_left_out(path, link_kind(error))
        raise FileNotFoundError(errno.ENOENT, link_kind(error), path) from None
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _refuse_special(path, os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_special(path: str, mode: int) -> None:
    kind = kind_of(mode)
    if kind == DIRECTORY:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if kind is not None:
        note_left_out(path, kind)
        raise FileNotFoundError(errno.ENOENT, f"{kind}, not a regular file", path)


def note_left_out(path: str, kind: str) -> None:
    """Say on stderr, once, that something is not read."""
    if path not in _named:
        _named.add(path)
        _logger.warning("%s is %s: left out, only regular files are read", path, kind)


def check_size(path: str, size: int, most_bytes: int) -> None:
    """Raise CorruptDataError for a file that is too large to be read as a whole."""
    if size > most_bytes:
        detail = f"{size} bytes, and at most {most_bytes} are read of a file beside logs"
        raise CorruptDataError(Fault.TOO_LARGE.label, detail, position=0, path=path)
