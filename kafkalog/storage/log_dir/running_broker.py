"""Whether a broker runs on a log directory, by its lock. Rule: docs/erasure.md F1116."""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress

from kafkalog.errors import LogDirError
from kafkalog.storage.files.uris import is_remote

_LOCK = ".lock"
# As <fcntl.h> of 64-bit Linux has it: type, whence, start, length, process.
_FLOCK = struct.Struct("@hhqqi4x")


def refuse_running(log_dir: str) -> None:
    """Raise LogDirError if another process of this machine has locked a log directory, as brokers
    do for as long as they run. The lock is asked about, and not taken."""
    process = locking_process(os.path.join(log_dir, _LOCK))
    if process is not None:
        raise LogDirError(
            f"{log_dir}: process {process} has locked it, a broker runs on it: stop it, or give a "
            "copy of the directory"
        )


def locking_process(path: str) -> int | None:
    """Return the process that has a file locked for writing; None without such a lock or file."""
    if is_remote(path):
        return None
    with suppress(FileNotFoundError, PermissionError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        finally:
            os.close(descriptor)
        return None if kind == fcntl.F_UNLCK else int(process)
    return None
