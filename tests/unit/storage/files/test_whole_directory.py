"""A directory that is written as a whole or not at all, however the writing ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.errors import LogDirError
from kafkalog.storage.files.whole_directory import whole_directory
from tests.support.interrupts import heed_ctrl_c

_WRITES = """
import os, sys, time
from kafkalog.storage.files.whole_directory import whole_directory
with whole_directory(sys.argv[1], os.fsync) as scratch:
    open(os.path.join(scratch, "half"), "w").close()
    print("writing", flush=True)
    time.sleep(60)
"""


def writing(target: Path) -> subprocess.Popen[str]:
    """A process that has begun to write the directory."""
    command = [sys.executable, "-c", _WRITES, str(target)]
    run = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "writing\n"
    return run


def end(run: subprocess.Popen[str], number: int) -> int:
    run.send_signal(number)
    run.communicate(timeout=60)
    return run.returncode


def write(target: Path) -> None:
    with whole_directory(str(target), os.fsync) as scratch:
        Path(scratch, "whole").touch()


@pytest.mark.usefixtures("ended_by_hang_up")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_stopped_leaves_nothing(number: int, tmp_path: Path) -> None:
    assert end(writing(tmp_path / "new"), number) != 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_replaced_by_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    end(writing(tmp_path / "new"), signal.SIGKILL)
    (left,) = tmp_path.iterdir()
    assert list(left.iterdir()) == [left / "half"]
    write(tmp_path / "new")
    assert [path.name for path in tmp_path.rglob("*")] == ["new", "whole"]
    assert f"{left}: removed" in caplog.text


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    run = writing(tmp_path / "new")
    with pytest.raises(LogDirError, match="another process is writing"):
        write(tmp_path / "new")
    assert len(list(tmp_path.rglob("half"))) == 1
    end(run, signal.SIGINT)


def test_a_link_with_the_name_of_a_leftover_is_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "mine"
    kept.mkdir()
    (kept / "file").touch()
    end(writing(tmp_path / "new"), signal.SIGKILL)
    (left,) = (path for path in tmp_path.iterdir() if path != kept)
    (left / "half").unlink()
    left.rmdir()
    left.symlink_to(kept)
    write(tmp_path / "new")
    assert (kept / "file").exists()
    assert left.is_symlink()


def test_a_target_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "new"
    with pytest.raises(LogDirError, match="exists"), whole_directory(str(target), os.fsync):
        target.mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_uri_is_not_a_directory_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LogDirError, match="of this machine"), whole_directory("s3://a/b", os.fsync):
        pass
    assert list(tmp_path.iterdir()) == []
