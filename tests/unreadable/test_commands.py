"""Commands on a disk that fails: they print what can be read and name what cannot, and the exit
code says so. A preloaded library makes the disk fail under a copy of shop-week. F77 to F79."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.exit_codes import ExitCode
from tests.support.disks.failing_disk import FailingDisk, needs_compiler
from tests.support.disks.outside_pages import batches_outside, offsets_outside

pytestmark = needs_compiler
SEGMENT = "orders-0/00000000000000000000.log"


def said(path: Path, first: int, last: int, reason: str = "Input/output error") -> str:
    return f"{path}: bytes {first} to {last} cannot be read: {reason}\n"


def test_check_lists_what_is_unreadable_and_checks_the_rest(disk: FailingDisk, logs: Path) -> None:
    # F77, F78
    disk.fail_pages(logs / SEGMENT, 2, 5)
    ended = disk.kafkalog("check", logs, "--no-indexes", "--format", "json")
    assert ended.returncode == ExitCode.UNREADABLE_INPUT
    findings = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {finding["kind"] for finding in findings} == {"unreadable"}
    assert {finding["file"] for finding in findings} == {str(logs / SEGMENT)}
    assert findings[0]["detail"] == "bytes 8192 to 12287 cannot be read: Input/output error"
    lost = sum(finding["length"] for finding in findings)
    kept = sum(end - start for start, end in batches_outside(logs / SEGMENT, 2, 5))
    assert lost + kept == (logs / SEGMENT).stat().st_size
    assert said(logs / SEGMENT, 8192, 12287) + said(logs / SEGMENT, 20480, 24575) in ended.stderr
    assert "14 segments" in ended.stderr


def test_dump_prints_every_record_outside_of_the_pages(disk: FailingDisk, logs: Path) -> None:
    # F78
    path = logs / SEGMENT
    disk.fail_pages(path, 0, 3, 4)
    ended = disk.kafkalog("dump", path, "--deep", "--format", "json")
    assert ended.returncode == ExitCode.UNREADABLE_INPUT
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    offsets = [row["offset"] for row in rows if "offset" in row]
    assert offsets == offsets_outside(path, 0, 3, 4)
    assert said(path, 0, 4095) + said(path, 12288, 20479) in ended.stderr


@pytest.mark.parametrize(
    ("how", "reason"), [("open", "Input/output error"), ("denied", "Permission denied")]
)
def test_a_file_that_cannot_be_opened_costs_a_row_and_not_the_run(
    disk: FailingDisk, logs: Path, how: str, reason: str
) -> None:
    disk.fail_open(logs / SEGMENT, how)
    ended = disk.kafkalog("check", logs, "--no-indexes", "--format", "json")
    assert ended.returncode == ExitCode.UNREADABLE_INPUT
    (finding,) = (json.loads(line) for line in ended.stdout.splitlines() if "unreadable" in line)
    size = (logs / SEGMENT).stat().st_size
    assert (finding["position"], finding["length"]) == (0, size)
    assert said(logs / SEGMENT, 0, size - 1, reason) in ended.stderr
    assert "14 segments" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("ls",),
        ("ls", "--by", "segment"),
        ("txns",),
        ("groups", "--all-groups"),
        ("find", "--topic", "orders", "--key", "absent"),
        ("get-offsets", "--time", "max-timestamp"),
        ("recover",),
    ],
    ids=" ".join,
)
def test_every_command_goes_on_and_ends_with_exit_code_3(
    disk: FailingDisk, logs: Path, arguments: tuple[str, ...]
) -> None:
    disk.fail_pages(logs / SEGMENT, 2)
    disk.fail_open(logs / "customers-0")
    command, *options = arguments
    ended = disk.kafkalog(command, logs, *options)
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    assert "error:" not in ended.stderr
    assert "not there" not in ended.stderr
    assert f"{logs}/customers-0 cannot be read and is left out: Input/output error" in ended.stderr
    assert said(logs / SEGMENT, 8192, 12287) in ended.stderr


@pytest.mark.parametrize("how", ["open", "denied"])
@pytest.mark.parametrize("command", ["ls", "check"])
def test_a_log_directory_that_cannot_be_listed_is_left_out(
    disk: FailingDisk, unpacked: Callable[[str], Path], tmp_path: Path, command: str, how: str
) -> None:
    # F77 and F890: metadata in the other one is compared with what is in this one.
    readable, failing = unpacked("kafka44.logs") / "log-dirs", tmp_path / "second"
    failing.mkdir()
    shutil.copy(readable / "meta.properties", failing)
    expected = disk.kafkalog(command, readable)
    disk.fail_open(failing, how)
    ended = disk.kafkalog(command, readable, failing)
    assert (expected.returncode, ended.returncode) == (ExitCode.DONE, ExitCode.UNREADABLE_INPUT)
    assert expected.stdout.splitlines()[-1] in ended.stdout.splitlines()
    assert f"{failing} cannot be read and is left out: " in ended.stderr
    assert "error:" not in ended.stderr


_SIDE_FILES = (
    "orders-0/00000000000000000000.index",
    "orders-0/00000000000000000000.timeindex",
    "orders-0/00000000000000000712.snapshot",
    "orders-0/leader-epoch-checkpoint",
    "orders-0/partition.metadata",
)
_TOP_FILES = ("meta.properties", "replication-offset-checkpoint", "log-start-offset-checkpoint")


@pytest.mark.parametrize("how", [pytest.param("page", marks=pytest.mark.deep), "denied"])
@pytest.mark.parametrize("name", _SIDE_FILES)
def test_a_side_file_that_cannot_be_read_is_a_finding(
    disk: FailingDisk, logs: Path, name: str, how: str
) -> None:
    # F136
    disk.fail_open(logs / name, how) if how == "denied" else disk.fail_pages(logs / name, 0)
    ended = disk.kafkalog("check", logs, "--format", "json")
    assert ended.returncode == ExitCode.UNREADABLE_INPUT
    (finding,) = (json.loads(line) for line in ended.stdout.splitlines())
    assert (finding["file"], finding["kind"]) == (str(logs / name), "unreadable")


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("dump", "--topic", "orders", "--partition", "0", "--deep", "--offsets", "500:503"),
        ("get-offsets", "--topic", "orders", "--time", "1794202763466"),
        ("get-offsets", "--topic", "orders", "--time", "1762900000000"),
    ],
    ids=["offsets", "time", "early time"],
)
def test_an_index_that_cannot_be_read_counts_as_absent(
    disk: FailingDisk, logs: Path, arguments: tuple[str, ...], kind: str
) -> None:
    command, *options = arguments
    expected = disk.kafkalog(command, logs, *options)
    disk.fail_open((logs / SEGMENT).with_suffix(kind))
    ended = disk.kafkalog(command, logs, *options)
    assert ended.stdout == expected.stdout
    assert "error:" not in ended.stderr
    is_named = str((logs / SEGMENT).with_suffix(kind)) in ended.stderr
    assert ended.returncode == (ExitCode.UNREADABLE_INPUT if is_named else ExitCode.DONE)


@pytest.mark.parametrize("name", _TOP_FILES)
def test_a_file_of_the_log_directory_that_cannot_be_read_is_left_out_and_named(
    disk: FailingDisk, logs: Path, name: str
) -> None:
    disk.fail_pages(logs / name, 0)
    ended = disk.kafkalog("ls", logs)
    assert ended.returncode == ExitCode.UNREADABLE_INPUT
    _, _, *topics, total = ended.stdout.splitlines()
    assert (len(topics), total.startswith("in all: ")) == (3, True)
    assert f"{logs / name}: cannot be read: Input/output error" in ended.stderr


def test_a_sound_disk_changes_no_exit_code(disk: FailingDisk, logs: Path) -> None:
    assert disk.kafkalog("check", logs).returncode == ExitCode.DONE


@pytest.mark.parametrize("name", [SEGMENT, "orders-0/leader-epoch-checkpoint"])
def test_a_broker_that_would_have_to_read_it_does_not_start(
    disk: FailingDisk, logs: Path, name: str
) -> None:
    # F78: no broker reads around a bad page, nor cuts the log there.
    disk.fail_pages(logs / name, 0)
    (logs / "recovery-point-offset-checkpoint").unlink()
    options = ("--topic", "orders", "--partition", "0", "--shutdown", "unclean")
    ended = disk.kafkalog("recover", logs, *options, "--format", "json", "--all")
    assert ended.returncode == ExitCode.UNREADABLE_INPUT
    (row,) = (json.loads(line) for line in ended.stdout.splitlines())
    assert not row["broker_starts"]
    assert "cannot be read: Input/output error" in row["start_error"]
    assert "a broker takes the log directory offline" in row["start_error"]
