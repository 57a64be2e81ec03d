"""Installations that nothing can be written to, and homes of nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.columns.compiled import COMPILED
from kafkalog.columns.kernel_cache import own_directory
from tests.conftest import ROOT

# Not even root can make a directory there.
_NOBODYS = "/proc/kafkalog"
_USED = """
import numpy as np
from kafkalog.columns.encoding_kernels import varint_size
print(varint_size(np.int64(300)), sum(varint_size.stats.cache_hits.values()))
"""


def installed(folder: Path, *, zipped: bool) -> Path:
    """The package's kernels, in a directory that has no room for a cache or in a zip file."""
    package = folder / "installed" / "kafkalog"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "kafkalog", package, ignore=ignored)
    (package / "columns" / "__pycache__").touch()
    if not zipped:
        return package.parent
    (package / "columns" / "__pycache__").unlink()
    return Path(shutil.make_archive(str(folder / "kafkalog"), "zip", package.parent))


def used(place: Path, temporary: Path, **environment: str) -> list[str]:
    """What a process prints that uses a kernel: its result, and how often it was found compiled."""
    return run_there(_USED, place, temporary, KAFKALOG_KERNELS="compiled", **environment)


def run_there(program: str, place: Path, temporary: Path, **environment: str) -> list[str]:
    """The words that a program prints with the package at a place, and no home."""
    temporary.mkdir(exist_ok=True)
    settings = {"PYTHONPATH": str(place), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=temporary,
        env={**kept, **settings, "HOME": _NOBODYS, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_kernels_are_kept_in_a_directory_of_their_own_or_compiled_anew(tmp_path: Path) -> None:
    place = installed(tmp_path, zipped=False)
    assert used(place, tmp_path / "t") == ["2", "0"]
    assert used(place, tmp_path / "t") == ["2", "1"]
    (kept,) = (tmp_path / "t").iterdir()
    # Another user could have put code there.
    kept.chmod(0o777)
    assert used(place, tmp_path / "t") == ["2", "0"]
    assert used(place, tmp_path / "u", XDG_CACHE_HOME=str(tmp_path / "cache")) == ["2", "0"]
    assert list((tmp_path / "u").iterdir()) == []


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_kernels_in_a_zip_file_are_used_without_a_home(tmp_path: Path) -> None:
    place = installed(tmp_path, zipped=True)
    assert used(place, tmp_path / "t") == ["2", "0"]
    cache = str(tmp_path / "cache")
    assert used(place, tmp_path / "t", XDG_CACHE_HOME=cache) == ["2", "0"]
    assert used(place, tmp_path / "t", XDG_CACHE_HOME=cache) == ["2", "1"]


def test_a_directory_that_is_another_file_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert own_directory() == str(tmp_path / f"kafkalog-kernels-{os.getuid()}")
    (tmp_path / f"kafkalog-kernels-{os.getuid()}").rmdir()
    (tmp_path / f"kafkalog-kernels-{os.getuid()}").symlink_to(tmp_path)
    assert own_directory() is None
    monkeypatch.setattr("tempfile.gettempdir", lambda: _NOBODYS)
    assert own_directory() is None
