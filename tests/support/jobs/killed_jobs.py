"""A job in a process group of its own, all of which is killed at a moment that its files tell."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.support.interrupts import heed_ctrl_c
from tests.support.repository import ROOT, delta_jars

# What comes to be in a job's directory, as soon as there is one more of these.
Moment = Callable[[Path], Iterator[Path]]

_LONGEST_S = 240


def session_started(work: Path) -> Iterator[Path]:
    return (work / "spark").glob("blockmgr-*")


def killed_at(
    moment: Moment,
    job: str,
    logs: Path,
    work: Path,
    arguments: Sequence[str],
    *,
    number: signal.Signals = signal.SIGKILL,
) -> int:
    """Run a job whose tables are `work`/tables until the moment; its exit code, or what it was once
    a signal that it can act on had ended it and all its processes."""
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
    command = [sys.executable, script, str(logs), "--output-dir", str(work / "tables"), *arguments]
    before = set(moment(work))
    with (work / "said").open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=said,
            stderr=said,
            start_new_session=True,
            preexec_fn=heed_ctrl_c,
        )
        give_up = time.monotonic() + _LONGEST_S
        while process.poll() is None and time.monotonic() < give_up:
            if set(moment(work)) - before:
                break
            time.sleep(0.001)
        if number is signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        code = process.wait(_LONGEST_S)
        wait_until(lambda: not processes_of(process.pid), 60)
        return code


def processes_of(session: int) -> list[str]:
    """What runs in a session of processes, by their names."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, fields = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, _, _, session_id = fields.split()[:4]
        if int(session_id) == session and state != "Z":
            found.append(name)
    return found


def wait_until(is_so: Callable[[], bool], seconds: int) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)
