"""`kafkalog dump --output`: a file that is complete or absent, and never one that is read."""

import errno
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import INTERRUPTED, ExitCode
from kafkalog.inspection.dump.dump_log import LogDump, Piece
from tests.support.repository import ROOT

PARTITION = ROOT / "examples/log-dirs/kafka-4.4/shop.codec-zstd-0"
LOG = f"{0:020d}.log"
FORMATS = ["text", "json", "csv", "parquet"]


def dump(*arguments: object) -> Result:
    given = ["dump", "--processes", "1", *map(str, arguments)]
    return CliRunner().invoke(kafkalog, given, catch_exceptions=False)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A log file, with an index beside it, in a directory that is named like no partition."""
    directory = tmp_path / "copied"
    directory.mkdir()
    for name in (LOG, f"{0:020d}.index"):
        shutil.copy(PARTITION / name, directory / name)
    return directory / LOG


def linked(copied: Path, kind: str) -> Path:
    if kind == "itself":
        return copied
    target = copied.parent.parent / "out"
    match kind:
        case "symbolic link":
            target.symlink_to(copied)
        case "hard link":
            target.hardlink_to(copied)
        case "link to a link":
            (copied.parent / "between").symlink_to(copied)
            target.symlink_to(copied.parent / "between")
        case "linked directory":
            target.symlink_to(copied.parent)
            return target / LOG
        case "link to the index":
            target.symlink_to(copied.with_suffix(".index"))
    return target


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize(
    "kind",
    [
        "itself",
        "symbolic link",
        "hard link",
        "link to a link",
        "linked directory",
        "link to the index",
    ],
)
def test_an_input_is_never_the_output(kind: str, output_format: str, copied: Path) -> None:
    target = linked(copied, kind)
    before = {path: path.read_bytes() for path in copied.parent.iterdir()}
    result = dump("--format", output_format, "--output", target, copied)
    assert (result.exit_code, result.stdout) == (ExitCode.WRONG_ARGUMENTS, "")
    assert result.stderr.startswith(f"error: --output: '{target}' is not valid, expected a file ")
    assert {path: path.read_bytes() for path in copied.parent.iterdir()} == before


def test_an_input_is_not_what_a_shell_appends_to(copied: Path) -> None:
    before = copied.read_bytes()
    program = "from kafkalog.command_line.main import main; main()"
    with open(copied, "ab") as appended:
        given: list[str | Path] = [sys.executable, "-c", program, "dump", str(copied)]
        run = subprocess.run(given, stdout=appended, stderr=subprocess.PIPE, timeout=120)
    assert run.returncode == ExitCode.WRONG_ARGUMENTS
    assert b"a file that is not read" in run.stderr
    assert copied.read_bytes() == before


def test_an_input_is_not_the_output_of_follow_either(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "out").hardlink_to(copied)
    before = copied.read_bytes()
    result = dump("--follow", "--limit", "1", "--output", tmp_path / "out", copied)
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert copied.read_bytes() == before


def test_what_lies_in_a_linked_partition_is_not_the_output(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    real = tmp_path / "elsewhere" / "orders-0"
    shutil.copytree(PARTITION, real)
    (tmp_path / "logs" / "orders-0").symlink_to(real)
    result = dump("--output", real / "dumped", tmp_path / "logs")
    assert result.exit_code == ExitCode.WRONG_ARGUMENTS
    assert not (real / "dumped").exists()


def interrupted(*_: object) -> Iterator[Piece]:
    yield Piece(b"begun")
    raise KeyboardInterrupt


def failed(*_: object) -> Iterator[Piece]:
    yield Piece(b"begun")
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize(
    ("ending", "code"), [(interrupted, INTERRUPTED), (failed, ExitCode.UNREADABLE_INPUT)]
)
def test_a_dump_that_does_not_end_leaves_the_older_file(
    ending: object, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "dumped"
    target.write_text("older")
    monkeypatch.setattr(LogDump, "pieces", ending)
    assert dump("--output", target, PARTITION / LOG).exit_code == code
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"dumped": "older"}


_STOPPED = """
import os
from kafkalog.inspection.dump.dump_log import LogDump, Piece
from kafkalog.command_line.main import main

def pieces(dump):
    yield Piece(b"begun")
    os.kill(os.getpid(), {number})
    yield Piece(b"never written")

LogDump.pieces = pieces
main()
"""


@pytest.mark.usefixtures("ended_by_hang_up")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_dump_that_a_signal_ends_leaves_the_older_file_alone(
    number: signal.Signals, tmp_path: Path
) -> None:
    target = tmp_path / "dumped"
    target.write_text("older")
    program = _STOPPED.format(number=int(number))
    given: list[str | Path] = [
        sys.executable,
        "-c",
        program,
        "dump",
        "--output",
        target,
        PARTITION / LOG,
    ]
    assert subprocess.run(given, timeout=120).returncode == 128 + number
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"dumped": "older"}


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize("output_format", ["text", "parquet"])
def test_a_full_disk_is_reported_with_the_output_and_leaves_nothing(
    output_format: str, processes: str, tmp_path: Path
) -> None:
    target = tmp_path / "dumped"
    program = "from kafkalog.command_line.main import main; main()"
    given: list[str | Path] = [
        sys.executable,
        "-c",
        program,
        "dump",
        "--deep",
        "--format",
        output_format,
    ]
    run = subprocess.run(
        [*given, "--processes", processes, "--output", target, PARTITION.parent],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
        # Python would cut off its own files of compiled modules.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    # A limit on files, which a test can set: a full disk's error comes by the same way.
    expected = f"error: [Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}: '{target}'\n"
    assert (run.returncode, run.stderr) == (ExitCode.UNREADABLE_INPUT, expected)
    assert list(tmp_path.iterdir()) == []


def test_the_output_has_the_permissions_of_the_file_that_it_replaces(tmp_path: Path) -> None:
    older, new = tmp_path / "older", tmp_path / "new"
    older.touch()
    older.chmod(0o640)
    for target in (older, new):
        assert dump("--output", target, PARTITION).exit_code == ExitCode.DONE
    assert stat.S_IMODE(older.stat().st_mode) == 0o640
    usual = tmp_path / "usual"
    usual.touch()
    assert new.stat().st_mode == usual.stat().st_mode


def test_a_file_that_may_not_be_written_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "dumped"
    target.write_text("older")
    # Root may write anything.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != target)
    result = dump("--output", target, PARTITION)
    assert (result.exit_code, target.read_text()) == (ExitCode.WRONG_ARGUMENTS, "older")


def test_the_file_that_a_link_names_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("older")
    (tmp_path / "link").symlink_to("real")
    assert dump("--output", tmp_path / "link", PARTITION).exit_code == ExitCode.DONE
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text().startswith("Dumping")


def test_what_a_shell_appends_to_keeps_what_it_has(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("earlier\n")
    with kept.open("ab") as file:
        command = [sys.executable, "-m", "kafkalog", "dump", str(PARTITION / LOG)]
        subprocess.run([*command, "--output", "/dev/stdout"], stdout=file, check=True)
    lines = kept.read_text().splitlines()
    assert lines[0] == "earlier"
    assert lines[1].startswith("Dumping ")


def test_devices_are_written_as_they_are() -> None:
    before = os.stat("/dev/null")
    assert dump("--output", "/dev/null", PARTITION).exit_code == ExitCode.DONE
    assert os.path.samestat(os.stat("/dev/null"), before)


def test_pipes_are_written_as_they_are(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert dump("--output", pipe, PARTITION).exit_code == ExitCode.DONE
    reader.join()
    assert read[0].startswith(b"Dumping")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_is_followed_is_in_the_output_at_once(tmp_path: Path) -> None:
    target = tmp_path / "dumped"
    target.write_text("older")
    result = dump("--follow", "--limit", "1", "--output", target, PARTITION)
    assert result.exit_code == ExitCode.DONE
    assert target.read_text().startswith("Dumping")
