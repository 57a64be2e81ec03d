"""`kafkalog dump --follow`: a log that grows and is rolled while it is shown. F586."""

import os
import re
import signal
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from tests.support.interrupts import heed_ctrl_c


def batch(*offsets: int, value: bytes = b"v") -> bytes:
    return write_batch([Record(offset, 0, 0, None, value) for offset in offsets])


def test_what_is_appended_and_rolled_is_shown_until_ctrl_c(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    first, second = (directory / f"{base:020d}.log" for base in (0, 5))
    first.write_bytes(batch(0, 1))
    output = tmp_path / "output"
    command = [sys.executable, "-m", "kafkalog", "dump", "--deep", "--follow"]
    with (
        output.open("wb") as target,
        subprocess.Popen([*command, str(directory)], stdout=target, preexec_fn=heed_ctrl_c) as run,
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


def test_a_log_that_is_cut_short_and_goes_on_is_shown_from_where_it_was_left(
    tmp_path: Path,
) -> None:
    # F636: as a follower's log whose leader went another way.
    first, second = new_log(tmp_path / "orders-0", 0), tmp_path / "orders-0" / f"{5:020d}.log"
    first.write_bytes(batch(0, 1))
    with following(tmp_path) as output:
        append(first, batch(2))
        wait_for(output, 2)
        append(first, batch(3, 4))
        append(second, batch(5))
        wait_for(output, 5)
        # In this order, so that a look in between finds nothing changed.
        overwrite(first, data := batch(0, 1) + batch(2) + batch(3, value=b"other"))
        os.truncate(first, len(data))
        second.unlink()
        wait_for_text(output, b"payload: other")
        append(first, batch(4))
        wait_for_text(output, b"other", b"| offset: 4 ")
    assert offsets(output) == [0, 1, 2, 3, 4, 5, 3, 4]
    assert said(output) == [f"{tmp_path / 'orders-0'} was truncated"]


def test_partitions_that_come_go_and_come_again_are_shown(tmp_path: Path) -> None:
    # F636.
    orders, clicks = (new_log(tmp_path / name, 0) for name in ("orders-0", "clicks-0"))
    orders.write_bytes(batch(0))
    with following(tmp_path, "--topic", "orders") as output:
        wait_for(output, 0)
        clicks.write_bytes(batch(70))
        other = new_log(tmp_path / "orders-1", 10)
        other.write_bytes(batch(10))
        wait_for(output, 10)
        append(orders, batch(1))
        orders.parent.rename(tmp_path / f"orders-0.{'0' * 32}-delete")
        wait_for_text(output, b"| offset: 1 ")
        wait_for_said(output, "was deleted")
        orders = new_log(tmp_path / "orders-0", 20)
        orders.write_bytes(batch(20))
        wait_for(output, 20)
        rewritten(orders, 3)
        wait_for(output, 3)
    assert offsets(output) == [0, 10, 1, 20, 3]
    assert said(output) == [
        f"{tmp_path / 'orders-0'} was deleted",
        f"{tmp_path / 'orders-0'} was recreated",
    ]


def test_segments_that_retention_deletes_do_not_end_it(tmp_path: Path) -> None:
    # F636.
    log = new_log(tmp_path / "orders-0", 0)
    log.write_bytes(batch(0))
    with following(tmp_path) as output:
        wait_for(output, 0)
        (log.parent / f"{1:020d}.log").write_bytes(batch(1))
        log.rename(f"{log}.deleted")
        wait_for(output, 1)
        (log.parent / f"{log.name}.deleted").unlink()
        append(log.parent / f"{1:020d}.log", batch(2))
        wait_for(output, 2)
    assert offsets(output) == [0, 1, 2]
    assert said(output) == []


def test_logs_without_a_whole_batch_yet_are_waited_for(tmp_path: Path) -> None:
    # An empty topic, a batch that is being written, preallocated zeros; beside a log with records.
    empty, begun, zeros, other = (new_log(tmp_path / f"orders-{n}", 0) for n in range(4))
    empty.write_bytes(b"")
    begun.write_bytes(batch(10)[:40])
    zeros.write_bytes(bytes(4096))
    other.write_bytes(batch(30))
    with following(tmp_path) as output:
        wait_for(output, 30)
        append(other, batch(31))
        wait_for(output, 31)
        append(begun, batch(10)[40:])
        wait_for(output, 10)
        overwrite(zeros, batch(20))
        wait_for(output, 20)
        empty.write_bytes(batch(0))
        wait_for(output, 0)
        overwrite(zeros, batch(20) + batch(21))
        wait_for(output, 21)
    assert offsets(output) == [30, 31, 10, 20, 0, 21]
    assert b"Found" not in output.read_bytes()
    assert said(output) == []


def test_a_limit_ends_it_inside_a_later_segment(tmp_path: Path) -> None:
    log = new_log(tmp_path / "orders-0", 0)
    for offset in (0, 2, 4):
        data = batch(offset) + batch(offset + 1)
        (log.parent / f"{offset:020d}.log").write_bytes(data)
    command = [sys.executable, "-m", "kafkalog", "dump", "--follow", "--limit", "3"]
    run = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
    assert re.findall(r"^baseOffset: (\d+) ", run.stdout, re.M) == ["0", "1", "2"]


def test_a_store_is_not_followed() -> None:
    result = CliRunner().invoke(kafkalog, ["dump", "--follow", "memory://logs/orders-0"])
    assert (result.exit_code, result.stdout) == (ExitCode.WRONG_ARGUMENTS, "")
    assert "--follow: 'memory://logs/orders-0'" in result.stderr
    assert "local paths" in result.stderr


@contextmanager
def following(*arguments: object) -> Iterator[Path]:
    """A run that follows, ended by Ctrl-C, and the file that it writes to."""
    output = Path(str(arguments[0])).with_suffix(".output")
    command = [sys.executable, "-m", "kafkalog", "dump", "--deep", "--follow", *map(str, arguments)]
    with (
        output.open("wb") as target,
        output.with_suffix(".said").open("wb") as errors,
        subprocess.Popen(command, stdout=target, stderr=errors, preexec_fn=heed_ctrl_c) as run,
    ):
        try:
            yield output
        finally:
            run.send_signal(signal.SIGINT)
            assert run.wait(20) == 0


def new_log(directory: Path, base_offset: int) -> Path:
    directory.mkdir()
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id(base_offset)}")
    return directory / f"{base_offset:020d}.log"


def topic_id(number: int) -> str:
    return urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")


def rewritten(log: Path, offset: int) -> None:
    """The topic deleted and made again between two looks."""
    aside = log.parent.with_name("made")
    new_log(aside, offset).write_bytes(batch(offset))
    log.parent.rename(log.parent.with_name(f"orders-0.{'1' * 32}-delete"))
    aside.rename(log.parent)


def offsets(output: Path) -> list[int]:
    return [int(each) for each in re.findall(r"^\| offset: (\d+) ", output.read_text(), re.M)]


def said(output: Path) -> list[str]:
    return output.with_suffix(".said").read_text().splitlines()


def wait_for_said(output: Path, words: str) -> None:
    wait_for_text(output.with_suffix(".said"), words.encode())


def wait_for_text(output: Path, *texts: bytes) -> None:
    """Wait until each of the texts is there, behind the one before."""
    end = time.monotonic() + 60
    pattern = re.compile(b".*".join(map(re.escape, texts)), re.S)
    while not pattern.search(output.read_bytes()):
        assert time.monotonic() < end
        time.sleep(0.05)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def overwrite(path: Path, data: bytes) -> None:
    """Write from the beginning in one step. Path.write_bytes empties the file before: a look in
    between would find a log that was truncated."""
    with path.open("r+b", buffering=0) as file:
        file.write(data)


def wait_for(output: Path, offset: int) -> None:
    """Wait until a record is shown."""
    wait_for_text(output, f"| offset: {offset} ".encode())
