"""A job in a process group of its own, all of which is killed at a moment that its files tell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.conftest import ROOT, delta_jars

# What comes to be in a job's directory, as soon as there is one more of these.
Moment = Callable[[Path], Iterator[Path]]

_LONGEST_S = 240


def session_started(work: Path) -> Iterator[Path]:
    return (work / "spark").glob("blockmgr-*")


def killed_at(moment: Moment, job: str, logs: Path, work: Path, arguments: Sequence[str]) -> int:
    """Run a job whose tables are `work`/tables until the moment; its exit code."""
    (work / "spark").mkdir()
    jars = ",".join(map(str, delta_jars()))
    environment = {
        **{name: value for name, value in os.environ.items() if "SPARK" not in name},
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--jars {jars} --conf spark.ui.enabled=false "
        "--conf spark.driver.bindAddress=127.0.0.1 --conf spark.driver.host=127.0.0.1 "
        "--master local[2] pyspark-shell",
        "SPARK_LOCAL_DIRS": str(work / "spark"),
    }
    script = str(ROOT / "jobs" / f"{job}.py")
    command = [sys.executable, script, str(logs), "--output", str(work / "tables"), *arguments]
    before = set(moment(work))
    with (work / "said").open("wb") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=said, stderr=said, start_new_session=True
        )
        give_up = time.monotonic() + _LONGEST_S
        while process.poll() is None and time.monotonic() < give_up:
            if set(moment(work)) - before:
                break
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()
