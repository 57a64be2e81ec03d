"""Directories for what is executed when it is loaded.

What lies in one counts only if its owner, and the owners of the directory and of all above it, are
root or the effective user, and no other user can write to any of them, as OpenSSH's StrictModes
requires for keys.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def user_cache() -> Path:
    """Return the user's directory for what can be made again, which may not exist."""
    # Without HOME and passwd entry the path keeps its ~, and is relative.
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kafkalog")


def own_directories(candidates: Iterable[Path], *, make: bool = False) -> Iterator[Path]:
    """Yield those of the absolute paths that are directories which only this user and root can
    write to. With `make` they are made."""
    for given in candidates:
        path = Path(os.path.realpath(given))
        with suppress(OSError):
            if not given.is_absolute() or given.is_symlink() or not _is_safe(path):
                continue
            if make:
                _make(path)
            # Another user may have made it just now.
            if path.is_dir() and _is_safe(path):
                yield path


def is_own(found: os.stat_result) -> bool:
    """Return whether only this user and root can write to a file or directory."""
    return _is_owned(found) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_safe(path: Path) -> bool:
    """Return whether only this user and root can change a directory and the path to it."""
    for each in (path, *path.parents):
        with suppress(FileNotFoundError):
            found = each.lstat()
            # In a sticky directory others can add entries, but not change any.
            is_sticky = each != path and found.st_mode & stat.S_ISVTX
            if not (is_own(found) or (is_sticky and _is_owned(found))):
                return False
    return True


def _is_owned(found: os.stat_result) -> bool:
    return found.st_uid in (0, os.geteuid())


def _make(path: Path) -> None:
    for each in (*reversed(path.parents), path):
        if not each.exists():
            # Parents that `parents=True` makes would have the mode that the umask leaves.
            each.mkdir(mode=0o755, exist_ok=True)
