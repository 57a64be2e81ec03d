"""Output that is not whole yet: its hidden name, who writes it, and what killed runs have left.

A name says which process writes: the host, the start of its kernel, the process and when it began.
So the next run can tell what no process owns any more, on a file system of several hosts too.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

DIRECTORY, FILE = ".kafkalog-unfinished", ".tmp"

_NAME_BYTES = 100
_UNIQUE_BYTES = 8
_NAME = re.compile(
    r"\.(?P<target>.*)\.[0-9a-f]{16}"
    r"\.(?P<host>.+)-(?P<kernel>[0-9a-f]{8})-(?P<space>\d+)-(?P<pid>\d+)-(?P<start>\d+)"
    rf"({re.escape(DIRECTORY)}|{re.escape(FILE)})",
    re.DOTALL,
)
# The fields of /proc/PID/stat after the name of the process, in which any character can be, begin
# with the state; this one is when the process began.
_START_FIELD = 19
_DEAD = (b"Z", b"X")  # its parent has not asked yet how it ended
# Tasks on other machines may continue to write for a moment after a job has ended.
_REMOVALS = 50
_REMOVAL_PAUSE_S = 0.1

_logger = logging.getLogger(__name__)


class Writing(Enum):
    """Whether the process that writes something is still there."""

    RUNS = "runs"
    ENDED = "ended"
    UNKNOWN = "unknown"


class _Owner(NamedTuple):
    """A process. `kernel` is that of one start of a machine, `space` one of its spaces of process
    ids (a container has its own), `start` when the process began."""

    host: str
    kernel: str
    space: int
    pid: int
    start: int


def unfinished_path(path: str, ending: str) -> str:
    """Return a name beside a path for incomplete output, which cannot be guessed and says which
    process writes it."""
    directory, name = os.path.split(path)
    # With room for the rest, however long the name is.
    beginning = os.fsdecode(os.fsencode(name)[:_NAME_BYTES])
    owner = "-".join(map(str, _own(os.getpid())))
    return os.path.join(
        directory, f".{beginning}.{secrets.token_hex(_UNIQUE_BYTES)}.{owner}{ending}"
    )


def lock(descriptor: int) -> bool | None:
    """Lock a file or directory for as long as it is open. Return False if another process has it
    locked, None where the file system has no such locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def remove_leftovers(path: str) -> list[str]:
    """Remove, beside a path, what processes of this user have left unfinished that are no longer
    there; say so, and name what a process of another host may still write.

    Return what another process is writing for the same path.
    """
    folder, name = os.path.split(os.path.abspath(path))
    target = os.fsdecode(os.fsencode(name)[:_NAME_BYTES])
    running = []
    for found, beginning, owner in _unfinished_in(folder):
        writing = _writing(found, owner)
        if writing is Writing.ENDED:
            remove(found)
            if not os.path.lexists(found):
                _logger.warning("%s: removed, an earlier run had not finished it", found)
        elif writing is Writing.UNKNOWN:
            _logger.warning(
                "%s is not finished; process %d of host %s may be writing it: remove it if that "
                "process has ended",
                found,
                owner.pid,
                owner.host,
            )
        elif beginning == target:
            running.append(found)
    return running


def remove(path: str) -> None:
    """Remove a file or a directory with all that is in it, or say that it could not be removed."""
    for _ in range(_REMOVALS):
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(FileNotFoundError, PermissionError):
                os.unlink(path)
        if not os.path.lexists(path):
            return
        time.sleep(_REMOVAL_PAUSE_S)
    _logger.warning("%s is not finished and could not be removed: remove it", path)


def _unfinished_in(folder: str) -> Iterator[tuple[str, str, _Owner]]:
    """Yield path, beginning of the target's name and owner of what this user's processes have not
    finished in a folder."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        for name in os.listdir(folder):
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            path, kind = os.path.join(folder, name), stat.S_IFDIR
            if name.endswith(FILE):
                kind = stat.S_IFREG
            with suppress(FileNotFoundError):
                found = os.lstat(path)
                if stat.S_IFMT(found.st_mode) == kind and found.st_uid == os.geteuid():
                    owner = _Owner(
                        match["host"],
                        match["kernel"],
                        *(int(match[each]) for each in ("space", "pid", "start")),
                    )
                    yield path, match["target"], owner


def _writing(path: str, owner: _Owner) -> Writing:
    """Return whether the owner still writes. A lock that another process holds always counts, one
    that is free only within this machine: on some file systems other hosts do not see it."""
    is_free = _is_unlocked(path)
    own = _own(os.getpid())
    if is_free is False:
        return Writing.RUNS
    if owner[:3] == own[:3] and own.start:
        return Writing.RUNS if _own(owner.pid) == owner else Writing.ENDED
    is_of_this_machine = owner.kernel == own.kernel or (
        owner.host == own.host and _is_older_than_this_start(path)
    )
    return Writing.ENDED if is_free and own.start and is_of_this_machine else Writing.UNKNOWN


def _is_older_than_this_start(path: str) -> bool:
    """Return whether nothing has changed since this machine was started, which ended all processes
    before. Another host can have the same name."""
    lines = Path("/proc/stat").read_text().splitlines()
    started = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    below = (os.path.join(root, name) for root, *names in os.walk(path) for name in chain(*names))
    with suppress(FileNotFoundError):
        return all(os.lstat(place).st_mtime < started for place in (path, *below))
    return False


def _is_unlocked(path: str) -> bool | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return lock(descriptor)
    finally:
        os.close(descriptor)


def _own(pid: int) -> _Owner:
    """Return a process of this host as an owner; `start` is 0 if there is none with this id."""
    start = 0
    with suppress(OSError):  # not Linux, or no such process
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
        start = 0 if fields[0] in _DEAD else int(fields[_START_FIELD])
    return _Owner(*_machine(), pid, start)


@cache
def _machine() -> tuple[str, str, int]:
    """Return the host's name, its kernel's start, and the space of process ids."""
    kernel, space = "0" * 8, 0
    with suppress(OSError):  # not Linux
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        space = os.stat("/proc/self/ns/pid").st_ino
    return socket.gethostname().replace("/", "_") or "unknown", kernel, space
