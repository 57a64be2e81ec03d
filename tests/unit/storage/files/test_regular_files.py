"""What is not a regular file, or has no end, costs itself only: nothing waits for it or reads it.

Rule: docs/format.md F88.
"""

import os
import resource
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkalog.command_line.main import kafkalog
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.exit_codes import ExitCode
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import InputFile, list_directory, read_bytes, read_text
from kafkalog.storage.files.unreadable_input import noted_unreadable
from kafkalog.storage.log_dir.log_dir import find_partitions, read_log_dir
from tests.support.repository import ROOT

EXAMPLE = ROOT / "examples/log-dirs/kafka-4.4"
PARTITION = "shop.codec-zstd-0"
SECOND = f"{10**9:020d}"
# What Kafka's tools, and readers of whole files, would take for one of its files.
NAMES = [f"{SECOND}.log", f"{SECOND}.index", f"{SECOND}.snapshot", "leader-epoch-checkpoint"]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "logs"
    shutil.copytree(EXAMPLE / PARTITION, directory / PARTITION)
    (directory / PARTITION / "leader-epoch-checkpoint").unlink(missing_ok=True)
    return directory


def put_special(path: Path, kind: str) -> None:
    match kind:
        case "a pipe":
            os.mkfifo(path)
        case "a device":
            path.symlink_to("/dev/zero")
        case "a socket":
            with socket.socket(socket.AF_UNIX) as bound:
                # A socket's path has to be short.
                bound.bind(f"/proc/self/cwd/{os.path.relpath(path)}")
        case "a link that leads nowhere (Too many levels of symbolic links)":
            path.symlink_to(path)
        case "a link that leads nowhere (No such file or directory)":
            path.symlink_to("nowhere")


KINDS = [
    "a pipe",
    "a device",
    "a link that leads nowhere (Too many levels of symbolic links)",
    "a link that leads nowhere (No such file or directory)",
]


def run(*arguments: object) -> Result:
    given = [str(argument) for argument in arguments]
    return CliRunner().invoke(kafkalog, given, catch_exceptions=False)


@contextmanager
def without_privileges() -> Iterator[None]:
    """As a user whom permissions hold for."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_link_into_a_directory_without_permission_is_unreadable() -> None:
    # It counted as one that leads nowhere: commands ended with exit code 0.
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        base.chmod(0o755)
        hidden = base / "hidden"
        (hidden / "orders-0").mkdir(parents=True)
        (base / "orders-0").symlink_to(hidden / "orders-0")
        hidden.chmod(0)
        with without_privileges(), noted_unreadable() as found:
            assert list_directory(name) == [Entry("hidden", str(hidden), True, 0)]
            lines = found.lines()
        hidden.chmod(0o700)
    assert lines == [f"{base / 'orders-0'} cannot be read and is left out: Permission denied"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_check_finds_what_is_not_a_regular_file_and_checks_the_rest(
    name: str, kind: str, log_dir: Path
) -> None:
    whole = run("check", log_dir, "--format", "json").stdout
    put_special(log_dir / PARTITION / name, kind)
    result = run("check", log_dir, "--format", "json")
    found = [line for line in result.stdout.splitlines() if line not in whole.splitlines()]
    assert f"{PARTITION}/{name}" in found[0]
    assert '"kind": "unreadable"' in found[0]
    assert f"{kind}: only regular files are read" in found[0]
    assert len(found) == 1
    assert "UNREADABLE in part or as a whole: 1 file;" in result.stderr
    assert result.exit_code == ExitCode.FINDINGS


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
def test_ls_lists_the_rest_and_names_what_is_left_out(kind: str, log_dir: Path) -> None:
    put_special(log_dir / PARTITION / NAMES[0], kind)
    put_special(log_dir / "orders-7", kind)
    for arguments in (["ls"], ["ls", "--by", "partition"], ["ls", "--by", "segment"]):
        result = run(*arguments, log_dir)
        assert result.exit_code == ExitCode.DONE
        assert "shop.codec-zstd" in result.stdout
        (line,) = (each for each in result.stdout.splitlines() if "only regular files" in each)
        assert line.endswith(f", 0 B: {kind}: only regular files are read")
        assert all(f"{log_dir}/{name}" in line for name in (f"{PARTITION}/{NAMES[0]}", "orders-7"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
def test_a_log_directory_without_readable_properties_is_read(
    kind: str, log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("meta.properties", "replication-offset-checkpoint", ".kafka_cleanshutdown"):
        put_special(log_dir / name, kind)
    (log,) = find_partitions([str(log_dir)])
    assert (log.log_dir.cluster_id, log.log_dir.high_watermarks) == (None, {})
    assert f"{log_dir}/meta.properties is {kind}: left out" in caplog.text


@pytest.mark.timeout(60)
@pytest.mark.parametrize("command", ["ls", "check", "dump", "groups", "txns", "get-offsets"])
def test_a_pipe_that_is_given_is_refused(command: str, log_dir: Path) -> None:
    path = log_dir / PARTITION / NAMES[0]
    os.mkfifo(path)
    result = run(command, path)
    assert result.exit_code == ExitCode.UNREADABLE_INPUT
    assert f"{path} is a pipe: only regular files and directories are read" in result.stderr


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["a pipe", "a device", "a socket"])
def test_what_is_not_a_regular_file_is_not_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"{0:020d}.index"
    put_special(path, kind)
    with pytest.raises(FileNotFoundError, match=kind):
        InputFile(str(path))
    assert read_text(str(path)) is None
    assert list_directory(str(tmp_path)) == []


@pytest.fixture
def little_memory() -> object:
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
def test_a_file_without_end_is_not_read_as_a_whole(log_dir: Path) -> None:
    names = ["meta.properties", "recovery-point-offset-checkpoint", ".kafka_cleanshutdown"]
    for name in names:
        (log_dir / name).touch()
        os.truncate(log_dir / name, 30 * 2**30)
    with pytest.raises(CorruptDataError, match="too_large: 32212254720 bytes"):
        read_bytes(str(log_dir / names[0]))
    found = read_log_dir(str(log_dir))
    assert (found.cluster_id, found.recovery_points, found.is_clean_shutdown) == (None, {}, True)
    with pytest.raises(LogDirError, match="32212254720 bytes"):
        find_partitions([str(log_dir)])


@pytest.mark.parametrize(
    "name", [f"{0:020d}.index", f"{0:020d}.txnindex", f"{0:020d}.snapshot", "partition.metadata"]
)
@pytest.mark.usefixtures("little_memory")
def test_check_finds_a_file_that_is_too_large_to_be_one_of_kafkas(name: str, log_dir: Path) -> None:
    with open(log_dir / PARTITION / name, "ab") as file:
        file.truncate(30 * 2**30)
    result = run("check", log_dir)
    assert result.exit_code == ExitCode.FINDINGS
    assert "too_large" in result.stdout
    assert "missing" not in result.stdout
