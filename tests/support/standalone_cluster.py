"""Spark's own cluster on loopback: a master and workers, ended by their process ids."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType

import pyspark

from tests.support.broker.java_tools import end

SPARK_HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
WORKERS = 2
_START_SECONDS = 60
_STOP_SECONDS = 30
_POLL_SECONDS = 0.1
# Each step of a job in a test is a matter of seconds.
SUBMIT_SECONDS = 480


class ClusterError(RuntimeError):
    """A cluster that did not start, with the end of what it said."""


def environment_of_spark() -> dict[str, str]:
    """This process's environment without what belongs to its own Spark."""
    return {
        key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))
    } | {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": HOST}


def _environment_of_workers() -> dict[str, str]:
    """That environment without packages of this process: executors have what is shipped to them."""
    return {key: value for key, value in environment_of_spark().items() if key != "PYTHONPATH"}


class StandaloneCluster:
    """A context manager. The last worker does not see what is in `hidden`, if that is given."""

    def __init__(
        self, work_dir: Path, hidden: Path | None, ports: Sequence[int], workers: int = WORKERS
    ) -> None:
        self.work_dir = work_dir
        self._workers = workers
        self._hidden = hidden
        self._port, self._web_port = ports
        self.url = f"spark://{HOST}:{self._port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> StandaloneCluster:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def _start(self) -> None:
        where = ["--host", HOST, "--port", str(self._port), "--webui-port", str(self._web_port)]
        self._launch("master", [_spark("spark-class"), _deployed("master.Master"), *where])
        self._wait_for(0)
        for number in range(self._workers):
            sized = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--host", HOST]
            folder = ["--work-dir", str(self.work_dir / f"worker-{number}")]
            command = [_spark("spark-class"), _deployed("worker.Worker"), *sized, *folder, self.url]
            if self._hidden is not None and number == self._workers - 1:
                # In a view of the file system of its own there is nothing in the directory.
                cover = f"mount -t tmpfs none {shlex.quote(str(self._hidden))}"
                command = [
                    "unshare",
                    "--mount",
                    "sh",
                    "-c",
                    f"{cover} && exec {shlex.join(command)}",
                ]
            self._launch(f"worker-{number}", command)
        self._wait_for(self._workers)

    def _launch(self, name: str, command: Sequence[str]) -> None:
        self.work_dir.mkdir(parents=True, exist_ok=True)
        with (self.work_dir / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    cwd=self.work_dir,
                    env=_environment_of_workers(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _wait_for(self, workers: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if any(process.poll() is not None for process in self._processes):
                break
            if self._alive_workers() == workers:
                return
            time.sleep(_POLL_SECONDS)
        said = "\n".join(path.read_text()[-1500:] for path in sorted(self.work_dir.glob("*.log")))
        raise ClusterError(f"no cluster of {workers} workers:\n{said}")

    def _alive_workers(self) -> int | None:
        said = (self.work_dir / "master.log").read_text()
        return said.count("Registering worker ") if "New state: ALIVE" in said else None

    def _stop(self) -> None:
        for process in reversed(self._processes):
            end(process)

    def executors(self) -> list[int]:
        """The processes that workers have started for a job, by the number of the worker."""
        return [pid for worker in self._processes[1:] for pid in children(worker.pid)]

    def submit(
        self,
        script: Path,
        *arguments: str,
        options: Sequence[str] = (),
        settings: Mapping[str, str] = MappingProxyType({}),
        python: str = sys.executable,
        cwd: Path | None = None,
    ) -> subprocess.Popen[str]:
        """Start `spark-submit` as a user does; the process."""
        given = {
            "spark.ui.enabled": "false",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "600m",
            "spark.sql.shuffle.partitions": "2",
            **settings,
        }
        pairs = [part for key, value in given.items() for part in ("--conf", f"{key}={value}")]
        command = [_spark("spark-submit"), "--master", self.url, *pairs, *options, str(script)]
        return subprocess.Popen(
            [*command, *arguments],
            cwd=cwd or self.work_dir,
            env={**environment_of_spark(), "PYSPARK_PYTHON": python},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _spark(program: str) -> str:
    return str(SPARK_HOME / "bin" / program)


def _deployed(name: str) -> str:
    return f"org.apache.spark.deploy.{name}"


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a submitted job, once it is done."""
    try:
        said, complained = process.communicate(timeout=SUBMIT_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(_STOP_SECONDS)
    return process.returncode, said, complained


def children(pid: int) -> list[int]:
    """The processes that a process has started and that run."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    # Those started by another thread of it are listed there.
    others = Path(f"/proc/{pid}/task").glob("*/children")
    return sorted(
        {int(child) for path in others for child in _text(path).split()} | {*map(int, found)}
    )


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    """The children of a process, theirs, and so on."""
    return [found for child in children(pid) for found in (child, *descendants(child))]


def kill(pids: Sequence[int]) -> None:
    """End processes at once, as a machine does that loses its power."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
