"""Files of machine code, each with a checksum.

What is loaded is executed. So a file counts only where its owner, and the owners of its directory
and of all directories above, are root or the effective user, and others can write to none of them,
as OpenSSH's StrictModes has it for keys. Elsewhere nothing is loaded, and nothing is written.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_SUFFIX = ".kernel"
_DIGEST_BYTES = 32


def code_name(kernel_name: str, *made_of: object) -> str:
    """The name of a kernel's file: a hash of all that its machine code is made of."""
    # numba compiles other code where this is set.
    parts = (os.environ.get("NUMBA_BOUNDSCHECK"), *made_of)
    return f"{kernel_name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


def kept_code(name: str) -> bytes | None:
    """Return the code that is kept under a name; None where there is no sound one."""
    for folder in _folders():
        with suppress(OSError):
            data = _read(folder / f"{name}{_SUFFIX}")
            digest, code = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
            if hashlib.sha256(code).digest() == digest:
                return code
    return None


def keep_code(name: str, code: bytes) -> None:
    """Keep the code in the first directory that can be written to, if there is one."""
    for folder in _folders(make=True):
        with suppress(OSError):
            with tempfile.TemporaryDirectory(dir=folder) as own:
                path = Path(own, name)
                path.write_bytes(hashlib.sha256(code).digest() + code)
                path.chmod(0o644)  # whatever the umask is
                # Whole or not at all, whoever else writes it.
                path.replace(folder / f"{name}{_SUFFIX}")
            return


def _folders(*, make: bool = False) -> Iterator[Path]:
    """The directories that only this user and root can write to, best first."""
    for given in _candidates():
        path = Path(os.path.realpath(given))
        with suppress(OSError):
            if not given.is_absolute() or given.is_symlink() or not _is_safe(path):
                continue
            if make:
                _make(path)
            # Another user can have made it just now.
            if path.is_dir() and _is_safe(path):
                yield path


def _candidates() -> Iterator[Path]:
    package = Path(__file__).parent
    if package.is_dir():  # else in a zip file
        yield package / "__pycache__"
    yield Path(os.environ.get("NUMBA_CACHE_DIR", ""))
    # Without HOME and passwd entry the path keeps its ~, and is relative.
    yield Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kafkalog")
    with suppress(OSError):
        yield Path(tempfile.gettempdir(), f"kafkalog-kernels-{os.geteuid()}")


def _is_safe(path: Path) -> bool:
    """Whether only this user and root can change a directory, what is in it, and where it lies."""
    for each in (path, *path.parents):
        with suppress(FileNotFoundError):
            found = each.lstat()
            # In a sticky directory others make entries, but change none.
            is_sticky = each != path and found.st_mode & stat.S_ISVTX
            if not (_is_own(found) or (is_sticky and _is_owned(found))):
                return False
    return True


def _is_own(found: os.stat_result) -> bool:
    return _is_owned(found) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_owned(found: os.stat_result) -> bool:
    return found.st_uid in (0, os.geteuid())


def _make(path: Path) -> None:
    for each in (*reversed(path.parents), path):
        if not each.exists():
            # Parents that `parents=True` makes would have the mode that the umask leaves.
            each.mkdir(mode=0o755, exist_ok=True)


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(found.st_mode) and _is_own(found) else b""
