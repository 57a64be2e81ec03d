"""Parts of a benchmark in processes of their own: their time, their processors' time, their memory.

Linux only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

_PROJECT = Path(__file__).parents[2]
_PROC = Path("/proc")


class Measured(NamedTuple):
    """One process and all that it started: what it counted, the seconds that passed and that its
    processors were busy without those of its start, and the most memory at one time, shared pages
    counted by their shares."""

    count: int  # type: ignore[assignment]
    seconds: float
    busy_seconds: float
    peak_bytes: int = 0


class CommandRun(NamedTuple):
    """A command with its start: the seconds that passed, and that processors were busy with it and
    with all that it has started and waited for."""

    seconds: float
    busy_seconds: float


def command_run(command: Sequence[str]) -> CommandRun:
    """Run a command, whose output goes nowhere. Raises CalledProcessError for an exit code above
    1, which is that of findings."""
    started = time.perf_counter()
    with open(os.devnull, "w") as nothing:
        actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), each) for each in (1, 2)]
        process = os.posix_spawnp(command[0], [*command], os.environ, file_actions=actions)
        _, status, usage = os.wait4(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        raise subprocess.CalledProcessError(code, command)
    return CommandRun(time.perf_counter() - started, usage.ru_utime + usage.ru_stime)


def submit_arguments(*, cores: int = 2, memory: str = "2g", jars: str = "") -> str:
    """Spark's arguments for a session of one machine, with a driver of so much memory; `jars` are
    paths divided by commas."""
    return (
        f"--master local[{cores}] --driver-memory {memory} {f'--jars {jars} ' if jars else ''}"
        "--conf spark.ui.enabled=false --conf spark.driver.bindAddress=127.0.0.1 "
        "--conf spark.driver.host=127.0.0.1 pyspark-shell"
    )


def given_jars() -> str:
    """The jars that the environment names for Spark, such as Delta's, or else those that `make
    setup` fetched, divided by commas."""
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "").split()
    fetched = ",".join(str(path) for path in sorted(Path(sys.prefix, "ivy", "jars").glob("*.jar")))
    return next((after for name, after in pairwise(given) if name == "--jars"), fetched)


def on_one_processor() -> list[str]:
    """What a command is put behind, to run on one processor."""
    return ["taskset", "-c", str(max(os.sched_getaffinity(0)))]


def measured_process(command: Sequence[str], submit: str) -> Measured:
    """What a part of a benchmark prints in its last line, run in a process of its own, and the
    memory of that and all it starts; `submit` are Spark's arguments. Raises CalledProcessError
    where it fails."""
    printed, peak_bytes = part_output(command, submit)
    count, seconds, busy_seconds = printed[:3]
    return Measured(count, seconds, busy_seconds, peak_bytes)


def part_output(command: Sequence[str], submit: str) -> tuple[Any, int]:
    """Return the result together with the JSON in the last line."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": submit}
    with subprocess.Popen(
        command,
        cwd=_PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        peak = _Peak(process.pid)
        output, _ = process.communicate()
        peak.stop()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return json.loads(output.splitlines()[-1]), peak.bytes


class _Peak:
    """Watches the memory of a session's processes."""

    def __init__(self, session: int) -> None:
        self.bytes = 0
        self._session = session
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.5):
            self.bytes = max(self.bytes, sum(map(_memory, _processes_of(self._session))))


def _processes_of(session: int) -> list[int]:
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _session_of(pid) == session]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _memory(pid: int) -> int:
    """Bytes of a process, 0 of one that has ended."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def busy_seconds() -> float:
    """Sum over all running processes of this session, their ended children included."""
    own = os.getsid(0)
    return sum(map(process_seconds, _processes_of(own)))


def process_seconds(pid: int) -> float:
    """What a process and its ended children have kept a processor busy; 0 of one that has ended."""
    return _seconds(pid, slice(11, 15))


def own_seconds(pid: int) -> float:
    """The same without its children."""
    return _seconds(pid, slice(11, 13))


def _seconds(pid: int, numbers: slice) -> float:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # Behind the name, which may hold anything: from the state on.
    fields = stat.rpartition(")")[2].split()
    return sum(int(field) for field in fields[numbers]) / os.sysconf("SC_CLK_TCK")


def worker_peak_bytes() -> int:
    """The most memory that any of this session's Python workers has had."""
    own = os.getsid(0)
    return max(_peak_of_worker(pid) for pid in _processes_of(own))


def _peak_of_worker(pid: int) -> int:
    directory = _PROC / str(pid)
    if b"pyspark.worker" not in (directory / "cmdline").read_bytes():
        return 0
    lines = (directory / "status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
