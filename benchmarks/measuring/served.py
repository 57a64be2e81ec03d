"""`kafkalog serve` in a process of its own, for benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_READY_SECONDS = 60


@contextmanager
def served(log_dir: Path, ready: Path, root: str | None = None) -> Iterator[tuple[str, int]]:
    """Serve a log directory on loopback; give the address, HOST:PORT, and the process. The address
    is written to the file `ready`. `root` is the checkout that serves, by default the one that
    measures."""
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "kafkalog", "serve", str(log_dir)]
    command += ["--listen", "127.0.0.1:0", "--ready-file", str(ready)]
    environment = os.environ if root is None else {**os.environ, "PYTHONPATH": root}
    process = subprocess.Popen(command, env=environment, cwd=root, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + _READY_SECONDS
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("kafkalog serve did not start")
            time.sleep(0.1)
        yield ready.read_text().strip(), process.pid
    finally:
        process.kill()
        process.wait()
