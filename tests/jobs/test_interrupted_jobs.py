"""Ctrl-C in a job leaves no process behind, whenever it comes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkalog.exit_codes import INTERRUPTED
from tests.support.interrupts import heed_ctrl_c
from tests.support.jobs.job_runs import DAMAGED
from tests.support.jobs.killed_jobs import processes_of, wait_until

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("is_terminal", [True, False], ids=["as_a_terminal", "to_the_command"])
@pytest.mark.parametrize("delay_s", [0, 2])
def test_no_jvm_outlives_a_job_that_was_interrupted_while_spark_started(
    is_terminal: bool, delay_s: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "kafkalog", "job", "validate-checksums", str(DAMAGED)]
    command += ["--output-dir", str(tmp_path / "tables"), "--format", "parquet"]
    with (tmp_path / "said").open("wb") as said:
        job = subprocess.Popen(
            command, start_new_session=True, stdout=said, stderr=said, preexec_fn=heed_ctrl_c
        )
        wait_until(lambda: "java" in processes_of(job.pid), 120)
        time.sleep(delay_s)
        if is_terminal:
            os.killpg(job.pid, signal.SIGINT)
        else:
            job.send_signal(signal.SIGINT)
        assert job.wait(120) == INTERRUPTED
        wait_until(lambda: not processes_of(job.pid), 30)
    assert b"Traceback" not in (tmp_path / "said").read_bytes()
