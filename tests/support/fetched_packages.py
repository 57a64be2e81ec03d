"""Python packages that one test needs and the project's environment does not have: pip fetches them
once, into the user's cache."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_TIMEOUT_SECONDS = 400
_SHOWN_CHARACTERS = 1000


def fetched_packages(name: str, *requirements: str) -> Path:
    """Return the folder that has the packages and what they need, for `PYTHONPATH`. Skips the test
    where pip cannot fetch them."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256("\n".join((python, *requirements)).encode()).hexdigest()
    folder = Path(cache) / "kafkalog" / "packages" / f"{name}-{digest[:16]}"
    if folder.exists():
        return folder
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*command, "--target", str(scratch), *requirements],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode:
            said = done.stderr.strip()[-_SHOWN_CHARACTERS:]
            pytest.skip(f"pip cannot fetch {', '.join(requirements)}: {said}")
        # Another run may be at it too: the folder appears whole.
        if not folder.exists():
            scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder
