"""Where the machine code of kernels is kept, so that a read-only installation works too.

numba keeps it beside the modules, else in the user's cache directory, and fails where it can write
to neither; of modules in a zip file it finds out only after compiling.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def is_kept_by_numba(module_file: str) -> bool:
    """Whether numba has a place of its own for the kernels of a module."""
    folder = Path(module_file).parent
    if not folder.is_dir():  # in a zip file
        return _is_writable(user_cache() / "numba")
    given = os.environ.get("NUMBA_CACHE_DIR")
    places = [folder / "__pycache__", user_cache() / "numba", *([Path(given)] if given else [])]
    return any(_is_writable(place) for place in places)


def own_directory() -> str | None:
    """A directory for temporary files that is this user's alone; None where there is none.

    What is kept there is executed: nobody else may be able to write to it.
    """
    path = Path(tempfile.gettempdir()) / f"kafkalog-kernels-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return None
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return str(path) if is_own and not found.st_mode & 0o077 else None


def user_cache() -> Path:
    """Where the user's programs keep what they can make anew."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())


def _is_writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return True
