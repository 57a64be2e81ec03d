"""`kafkalog dump` on several processes: the same bytes, however it is ended nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkalog.exit_codes import INTERRUPTED, OUTPUT_CLOSED, ExitCode
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from tests.support.interrupts import heed_ctrl_c

pytestmark = pytest.mark.deep

_BATCHES = 80
_VALUE = bytes(range(65, 91)) * 16_000  # more than 400 KB, so that the segment is dumped in parts


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("logs") / "orders-0"
    directory.mkdir()
    path = directory / f"{0:020d}.log"
    with path.open("wb") as file:
        for offset in range(_BATCHES):
            file.write(write_batch([Record(offset, 0, 0, None, _VALUE)]))
    return path


def command(segment: Path, processes: int) -> list[str]:
    run = [sys.executable, "-m", "kafkalog", "dump", "--deep", str(segment)]
    return [*run, "--processes", str(processes)]


def test_any_number_of_processes_writes_the_same(segment: Path) -> None:
    one, two, five = (
        subprocess.run(command(segment, processes), capture_output=True, check=True).stdout
        for processes in (1, 2, 5)
    )
    assert one.count(b"\n| offset: ") == _BATCHES
    assert one == two == five


@contextmanager
def begun(segment: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A dump that waits for somebody to read on, in a session of its own, and all it started."""
    with subprocess.Popen(
        command(segment, 3),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=heed_ctrl_c,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.read(1000).startswith(b"Dumping ")
        yield run
        with pytest.raises(ProcessLookupError):
            for _ in range(100):
                os.killpg(run.pid, 0)
                time.sleep(0.1)


def test_an_output_that_is_closed_ends_it_at_once_and_quietly(segment: Path) -> None:
    with begun(segment) as run:
        assert run.stdout is not None
        run.stdout.close()
        assert run.wait(60) == OUTPUT_CLOSED
        assert run.stderr is not None
        assert run.stderr.read() == b""


def test_ctrl_c_ends_all_processes(segment: Path) -> None:
    with begun(segment) as run:
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(60) == INTERRUPTED


def test_a_process_that_is_killed_is_one_line_and_an_exit_code(segment: Path) -> None:
    with begun(segment) as run:
        os.kill(children(run.pid)[0], signal.SIGKILL)
        _, said = run.communicate(timeout=60)
        assert (run.returncode, said.count(b"\n")) == (ExitCode.UNREADABLE_INPUT, 1), said
        assert b"exit code -9" in said


def test_processes_end_when_the_first_one_is_killed(segment: Path) -> None:
    with begun(segment) as run:
        run.kill()
        run.communicate(timeout=60)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
