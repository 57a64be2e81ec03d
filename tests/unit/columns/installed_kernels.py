"""Programs that use a kernel of a copy of the package, in a process of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.repository import ROOT

# Not even root can make a directory there.
NO_HOME = "/proc/kafkalog"
_SETTINGS = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")

# Prints a kernel's result, and how often it was found compiled.
USES_NUMBA = """
import numpy as np
from kafkalog.columns.writing.encoding_kernels import varint_size
print(varint_size(np.int64(300)), sum(varint_size.stats.cache_hits.values()))
"""
# Prints a kernel's result, and whether numba was needed.
USES_STORED = """
import sys
import numpy as np
from kafkalog.columns.writing.encoding_kernels import varint_size
print(varint_size(np.int64(300)), "numba" in sys.modules)
"""


def installed(folder: Path, *, zipped: bool) -> Path:
    """The package's kernels, in a directory that has no room for a cache or in a zip file."""
    package = folder / "installed" / "kafkalog"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "kafkalog", package, ignore=ignored)
    (package / "columns" / "jit" / "__pycache__").touch()
    if not zipped:
        return package.parent
    (package / "columns" / "jit" / "__pycache__").unlink()
    return Path(shutil.make_archive(str(folder / "kafkalog"), "zip", package.parent))


def run(
    program: str, place: Path, temporary: Path, mode: str = "compiled", **environment: str
) -> list[str]:
    """The words that a program prints with the package at a place, and no home."""
    temporary.mkdir(exist_ok=True)
    settings = {
        "PYTHONPATH": str(place),
        "TMPDIR": str(temporary),
        "PYTHONDONTWRITEBYTECODE": "1",
        "KAFKALOG_KERNELS": mode,
        "HOME": NO_HOME,
    }
    kept = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=temporary,
        env={**kept, **settings, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()
