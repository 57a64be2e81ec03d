"""Salvage from a disk that fails keeps every batch outside of the unreadable pages, and says what
is lost. Rules: docs/format.md F77 to F79, F181 and F182."""

import json
from pathlib import Path

from kafkalog.exit_codes import ExitCode
from tests.support.disks.failing_disk import FailingDisk, needs_compiler
from tests.support.disks.outside_pages import batches_outside
from tests.support.logs.damage_oracle import batch_spans

pytestmark = needs_compiler
PAGES = {
    "orders-0/00000000000000000000.log": (0, 1, 6),
    "orders-1/00000000000000000000.log": (7,),
    "customers-0/00000000000000000000.log": (2, 4),
}


def kept_batches(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return [data[start:end] for start, end in batch_spans(data)]


def test_every_batch_outside_of_the_pages_is_kept_byte_by_byte(
    disk: FailingDisk, logs: Path, tmp_path: Path
) -> None:
    # F78, F181
    for name, pages in PAGES.items():
        disk.fail_pages(logs / name, *pages)
    ended = disk.kafkalog("salvage", logs, "--to", tmp_path / "new", "--format", "json")
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    for path in sorted(logs.rglob("*.log")):
        name = str(path.relative_to(logs))
        data = path.read_bytes()
        expected = [data[start:end] for start, end in batches_outside(path, *PAGES.get(name, ()))]
        assert kept_batches(tmp_path / "new" / name) == expected, name
    lost = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {row["kind"] for row in lost} == {"unreadable"}
    assert {row["file"] for row in lost} == {str(logs / name) for name in PAGES}


def test_a_file_that_cannot_be_opened_is_lost_and_the_others_are_kept(
    disk: FailingDisk, logs: Path, tmp_path: Path
) -> None:
    gone = logs / "orders-0/00000000000000000000.log"
    disk.fail_open(gone)
    ended = disk.kafkalog("salvage", logs, "--to", tmp_path / "new", "--format", "json")
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    (lost,) = (json.loads(line) for line in ended.stdout.splitlines())
    assert (lost["first_offset"], lost["last_offset"]) == (0, 711)
    assert lost["length"] == gone.stat().st_size
    for path in set(logs.rglob("*.log")) - {gone}:
        assert (tmp_path / "new" / path.relative_to(logs)).read_bytes() == path.read_bytes()


def test_side_files_that_cannot_be_read_are_made_again(
    disk: FailingDisk, logs: Path, tmp_path: Path
) -> None:
    for path in logs.glob("orders-0/*"):
        if path.suffix != ".log":
            disk.fail_open(path)
    for name in ("replication-offset-checkpoint", "meta.properties"):
        disk.fail_pages(logs / name, 0)
    ended = disk.kafkalog("salvage", logs, "--to", tmp_path / "new", "--format", "json")
    assert ended.returncode == ExitCode.UNREADABLE_INPUT, ended.stderr
    assert ended.stdout == ""
    for path in logs.rglob("*.log"):
        assert (tmp_path / "new" / path.relative_to(logs)).read_bytes() == path.read_bytes()
    names = {path.name for path in (tmp_path / "new" / "orders-0").iterdir()}
    assert {"00000000000000000000.index", "00000000000000000000.timeindex"} <= names
    assert f"{logs}/meta.properties: cannot be read" in ended.stderr
