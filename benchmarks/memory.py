"""How much memory reading a large segment takes: `python -m benchmarks.memory FILE`, alone.

Prints the bytes by which the process grew at most while it read, on top of what it had with
kafkalog imported and its kernels loaded. Linux only.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.inputs.segments import Segment, write_repeated

_STATUS = Path("/proc/self/status")
_PROJECT = Path(__file__).parent.parent


class NotMeasuredError(Exception):
    """Why peak memory cannot be measured."""


def peak_growth(segment: Segment, size: int, directory: Path) -> int:
    """The growth in bytes of a fresh process that reads a file of `size` bytes.

    The file is the segment, again and again. Raises NotMeasuredError.
    """
    if not _STATUS.exists():
        raise NotMeasuredError("needs /proc")
    with tempfile.NamedTemporaryFile(dir=directory, suffix=".log") as file:
        write_repeated(segment, size, file.file)
        file.flush()
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory", file.name],
            cwd=_PROJECT,
            capture_output=True,
            text=True,
            check=True,
        )
    return int(done.stdout)


def _status_bytes(name: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise NotMeasuredError(f"no {name} in /proc")


def _main(path: Path) -> None:
    from benchmarks.contest.readers import records_of_file
    from kafkalog.inspection.compile_kernels import compile_kernels

    compile_kernels()
    before = _status_bytes("VmRSS")
    rows = sum(batch.num_rows for batch in records_of_file(path))
    if not rows:
        raise ValueError("no records were read")
    print(_status_bytes("VmHWM") - before)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
