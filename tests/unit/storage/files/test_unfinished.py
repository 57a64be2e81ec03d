"""What killed processes have left unfinished, on file systems of several hosts too.

Rule: F956.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.storage.files import unfinished
from kafkalog.storage.files.output_files import given_file
from kafkalog.storage.files.whole_directory import whole_directory

_WRITES = """
import os, sys, time
from kafkalog.storage.files.output_files import given_file
from kafkalog.storage.files.whole_directory import whole_directory
is_file = sys.argv[2] == "file"
with given_file("--output", sys.argv[1]) if is_file else whole_directory(sys.argv[1], os.fsync):
    print("writing", flush=True)
    time.sleep(60)
"""
KINDS = ("file", "directory")
OWN = HOST, KERNEL, SPACE = unfinished._machine()


def writing(target: Path, kind: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that writes to the target, and its unfinished output."""
    run = subprocess.Popen(
        [sys.executable, "-c", _WRITES, str(target), kind], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "writing\n"
    (left,) = target.parent.glob(f".{target.name}.*")
    return run, left


def killed(run: subprocess.Popen[str]) -> None:
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=60)


def write(target: Path, kind: str) -> None:
    if kind == "file":
        with given_file("--output", str(target)) as file:
            file.write(b"whole")
    else:
        with whole_directory(str(target), os.fsync) as scratch:
            Path(scratch, "whole").touch()


def left_by(machine: tuple[str, str, int], target: Path, kind: str) -> Path:
    """Unfinished output of this process, as if it ran on another machine or in another container:
    host, start of the kernel, space of process ids."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unfinished, "_machine", lambda: machine)
        ending = unfinished.FILE if kind == "file" else unfinished.DIRECTORY
        left = Path(unfinished.unfinished_path(str(target), ending))
    if kind == "file":
        left.write_bytes(b"half")
    else:
        (left / "t-0").mkdir(parents=True)
        (left / "t-0" / "half").touch()
    return left


def make_older(left: Path) -> None:
    """As if nothing had changed since long before this machine was started."""
    for place in (left, *left.rglob("*")):
        os.utime(place, (0, 0))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_killed_run_left_is_removed_by_a_run_to_another_path(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run, left = writing(tmp_path / "first", kind)
    killed(run)
    assert left.exists()
    write(tmp_path / "second", kind)
    assert [each.name for each in tmp_path.iterdir()] == ["second"]
    assert f"{left}: removed, an earlier run had not finished it" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_running_process_writes_stays(kind: str, tmp_path: Path) -> None:
    run, left = writing(tmp_path / "first", kind)
    write(tmp_path / "second", kind)
    assert left.exists()
    killed(run)


def test_a_process_that_was_killed_counts_as_ended_before_its_parent_asks(tmp_path: Path) -> None:
    run, left = writing(tmp_path / "first", "directory")
    run.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, run.pid, os.WEXITED | os.WNOWAIT)
    write(tmp_path / "second", "directory")
    assert not left.exists()
    run.communicate(timeout=60)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_process_without_its_lock_yet_writes_stays(kind: str, tmp_path: Path) -> None:
    left = left_by(OWN, tmp_path / "first", kind)
    write(tmp_path / "second", kind)
    assert left.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_another_process_with_the_same_number_is_not_the_owner(kind: str, tmp_path: Path) -> None:
    left = left_by(OWN, tmp_path / "first", kind)
    before, start, after = left.name.rpartition(str(unfinished._own(os.getpid()).start))
    left = left.rename(left.with_name(f"{before}{int(start) - 1}{after}"))
    write(tmp_path / "second", kind)
    assert not left.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_host_may_write_stays_and_is_named(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = left_by(("else-where", "01234567", 1), tmp_path / "first", kind)
    make_older(left)
    write(tmp_path / "second", kind)
    assert left.exists()
    assert f"process {os.getpid()} of host else-where may be writing it: remove it" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_container_of_this_machine_owns_what_it_has_locked(kind: str, tmp_path: Path) -> None:
    left = left_by(("a-container", KERNEL, 1), tmp_path / "first", kind)
    descriptor = os.open(left, os.O_RDONLY)
    assert unfinished.lock(descriptor)
    write(tmp_path / "second", kind)
    assert left.exists()
    os.close(descriptor)
    write(tmp_path / "third", kind)
    assert not left.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_left_before_this_machine_was_started_again_is_removed(
    kind: str, tmp_path: Path
) -> None:
    left = left_by((HOST, "01234567", SPACE), tmp_path / "first", kind)
    write(tmp_path / "second", kind)
    # It was changed since: a host with the same name.
    assert left.exists()
    make_older(left)
    write(tmp_path / "third", kind)
    assert not left.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_without_locks_other_spaces_of_process_ids_are_not_judged(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = left_by((HOST, KERNEL, SPACE + 1), tmp_path / "first", kind)

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))  # NFS, for directories

    monkeypatch.setattr("fcntl.flock", refuse)
    write(tmp_path / "second", kind)
    assert left.exists()


def test_a_file_of_the_user_is_never_taken_for_a_leftover(tmp_path: Path) -> None:
    names = (".a.tmp", ".a.0123456789abcdef.tmp", ".first.kafkalog-unfinished", "a.0-1-2-3-4.tmp")
    for name in names:
        (tmp_path / name).touch()
    unfinished.remove_leftovers(str(tmp_path / "second"))
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(names)


def test_names_have_room_for_their_owner(tmp_path: Path) -> None:
    write(tmp_path / ("é" * 127), "directory")
    write(tmp_path / ("é" * 120 + ".txt"), "file")
    assert len([*tmp_path.iterdir()]) == 2
