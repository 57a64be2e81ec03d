"""`kafkalog serve` in a process of its own."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_READY_SECONDS = 60
_RESIDENT = re.compile(r"VmRSS:\s+(\d+) kB")


class ServedProcess(NamedTuple):
    """A process that serves, and the address that its ready file names."""

    process: subprocess.Popen[str]
    address: str

    @property
    def processor_seconds(self) -> float:
        """The processor time that it has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_mib(self) -> int:
        """The memory that it occupies, with pages that it shares with others."""
        found = _RESIDENT.search(Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) // 1024


@contextmanager
def served_process(
    path: str, ready: Path, *options: str, open_files: int | None = None
) -> Iterator[ServedProcess]:
    """`kafkalog serve PATH` until the block ends, with a soft limit of open files if one is given.
    A ready file of an earlier process does not count."""
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "kafkalog", "serve", path, "--ready-file", str(ready)]

    def limit() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files or hard, hard))

    with subprocess.Popen(
        [*command, *options],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=None if open_files is None else limit,
    ) as process:
        try:
            end = time.monotonic() + _READY_SECONDS
            while not ready.exists():
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.02)
            yield ServedProcess(process, ready.read_text().strip())
        finally:
            process.kill()
