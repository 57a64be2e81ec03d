"""`kafkalog dump --follow`: a log that grows and is rolled while it is shown. F586."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record


def batch(*offsets: int) -> bytes:
    return write_batch([Record(offset, 0, 0, None, b"v") for offset in offsets])


def test_what_is_appended_and_rolled_is_shown_until_ctrl_c(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    first, second = (directory / f"{base:020d}.log" for base in (0, 5))
    first.write_bytes(batch(0, 1))
    output = tmp_path / "output"
    command = [sys.executable, "-m", "kafkalog", "dump", "--deep", "--follow"]
    with (
        output.open("wb") as target,
        subprocess.Popen([*command, str(directory)], stdout=target) as run,
    ):
        wait_for(output, 1)
        third = batch(2, 3, 4)
        append(first, third[:40])
        time.sleep(0.5)
        assert b"Found" not in output.read_bytes()
        append(first, third[40:])
        wait_for(output, 4)
        append(second, batch(5))
        wait_for(output, 5)
        append(second, batch(6))
        wait_for(output, 6)
        run.send_signal(signal.SIGINT)
        assert run.wait(20) == 0
    lines = output.read_text().splitlines()
    records = [line.split()[2] for line in lines if line.startswith("| ")]
    assert records == [str(offset) for offset in range(7)]
    dumped = [line.removeprefix("Dumping ") for line in lines if line.startswith("Dumping ")]
    assert dumped == [str(first), str(second)]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def wait_for(output: Path, offset: int) -> None:
    """Wait until a record is shown."""
    end = time.monotonic() + 60
    while f"| offset: {offset} ".encode() not in output.read_bytes():
        assert time.monotonic() < end
        time.sleep(0.05)
