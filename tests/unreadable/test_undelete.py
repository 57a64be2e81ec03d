"""What a broker has deleted comes back from a disk that fails, as far as it can be read; and the
recovery plan says where consumers stop on such a disk. Rules: F78, F128 and F197."""

import json
from pathlib import Path

from kafkalog.exit_codes import ExitCode
from tests.support.disks.failing_disk import FailingDisk, needs_compiler
from tests.support.disks.outside_pages import offsets_outside
from tests.support.logs.log_dirs import UNIQUE, log_name

pytestmark = needs_compiler
_PAGE = 4096


def test_unreadable_pages_are_zeros_in_the_copy_and_are_named(
    disk: FailingDisk, logs: Path, tmp_path: Path
) -> None:
    # F197
    marked = (logs / "orders-0").rename(logs / f"orders-0.{UNIQUE}-delete")
    disk.fail_pages(marked / log_name(0), 2)
    disk.fail_open(marked / "leader-epoch-checkpoint")
    target = tmp_path / "new"
    asked = ("--topic", "orders", "--to", target, "--format", "json")
    ended = disk.kafkalog("undelete", logs, *asked)
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    (row,) = map(json.loads, ended.stdout.splitlines())
    assert row["unreadable_bytes"] == _PAGE
    assert row["left_out"] == [f"{marked}/leader-epoch-checkpoint: it cannot be read"]
    data = bytearray((marked / log_name(0)).read_bytes())
    data[2 * _PAGE : 3 * _PAGE] = bytes(_PAGE)
    assert (target / "orders-0" / log_name(0)).read_bytes() == data
    assert not (target / "orders-0" / "leader-epoch-checkpoint").exists()
    assert f"{marked / log_name(0)}: bytes 8192 to 12287 cannot be read" in ended.stderr


def test_a_directory_of_another_topic_that_cannot_be_listed_costs_the_exit_code_and_not_the_run(
    disk: FailingDisk, logs: Path, tmp_path: Path
) -> None:
    # F78, F197
    (logs / "orders-0").rename(logs / f"orders-0.{UNIQUE}-delete")
    disk.fail_open(logs / "orders-1", "denied")
    ended = disk.kafkalog("undelete", logs, "--topic", "orders", "--to", tmp_path / "new")
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    assert (tmp_path / "new" / "orders-0" / log_name(0)).exists()
    reason = "cannot be read and is left out: Permission denied"
    assert ended.stderr == f"{logs / 'orders-1'} {reason}\n"


def test_ls_calls_a_partition_that_cannot_be_listed_unreadable(
    disk: FailingDisk, logs: Path
) -> None:
    # F77, F91
    disk.fail_open(logs / "orders-1", "denied")
    ended = disk.kafkalog("ls", logs)
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    line = f"also there: {logs / 'orders-1'}, 0 B: a partition that cannot be read"
    assert line in ended.stdout


def test_consumers_stop_at_an_unreadable_page(disk: FailingDisk, logs: Path) -> None:
    # F128: a broker that was stopped cleanly does not look there.
    path = logs / "orders-0" / log_name(0)
    disk.fail_pages(path, 5)
    asked = ("--topic", "orders", "--partition", "0", "--shutdown", "clean", "--format", "json")
    ended = disk.kafkalog("recover", logs, *asked)
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    (row,) = map(json.loads, ended.stdout.splitlines())
    outside = offsets_outside(path, 5)
    stop = next(offset for offset in range(len(outside)) if offset not in outside)
    assert (row["broker_starts"], row["consumers_stop_at"]) == (True, stop)
