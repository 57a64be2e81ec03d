"""Disks that fail while `kafkalog restore` reads them: docs/restore.md F1206 and F1207."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkalog.exit_codes import ExitCode
from tests.support.disks.failing_disk import FailingDisk, needs_compiler
from tests.support.golden.restored_copies import AS_OF

pytestmark = needs_compiler

# Workers do not know the variable by which the job would tell them of its file.
_JOB_ON_OTHER_MACHINES = """
import sys
from kafkalog.storage.files import unreadable_input
unreadable_input._VARIABLE = "UNKNOWN_TO_WORKERS"
from jobs.restore import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def inputs(unpacked: Callable[[str], Path]) -> list[Path]:
    return sorted((unpacked("restore44.logs") / "snapshots").glob("*/data"))


def bytes_of(partition: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(partition.glob("*.log")))


@pytest.mark.parametrize("failing", ["", "events-1", "events-1/00000000000000000000.log"])
def test_what_fails_is_named_and_other_copies_count(
    failing: str, inputs: list[Path], disk: FailingDisk, tmp_path: Path
) -> None:
    disk.fail_open(inputs[2] / failing)
    given: list[str | Path] = ["restore", *inputs, "--as-of", AS_OF, "--to", tmp_path / "new"]
    strict = disk.kafkalog(*given, "--strict")
    assert strict.returncode == ExitCode.UNREADABLE_INPUT
    assert str(inputs[2] / failing) in strict.stderr
    assert not (tmp_path / "new").exists()
    found = disk.kafkalog(*given)
    assert found.returncode == ExitCode.UNREADABLE_INPUT, found.stderr
    manifest: dict[str, Any] = json.loads((tmp_path / "new" / "manifest.json").read_text())
    assert any(str(inputs[2] / failing) in line for line in manifest["not_exact"])
    (row,) = (
        each
        for each in manifest["partitions"]
        if (each["topic"], each["partition"]) == ("events", 1)
    )
    kept = bytes_of(tmp_path / "new" / "data" / "events-1")[: row["bytes"]]
    assert len(kept) == row["bytes"]
    # A copy that was made later goes on beyond the cut.
    assert bytes_of(inputs[1] / "events-1").startswith(kept)


@pytest.mark.deep
@pytest.mark.spark
def test_the_job_names_what_tasks_on_other_machines_cannot_read(
    inputs: list[Path], disk: FailingDisk, tmp_path: Path
) -> None:
    """F1206."""
    failing = inputs[2] / "events-1" / "00000000000000000000.log"
    disk.fail_open(failing)
    given = [*inputs, "--as-of", AS_OF, "--to", tmp_path / "new"]
    found = disk.run(sys.executable, "-c", _JOB_ON_OTHER_MACHINES, *map(str, given))
    assert found.returncode == ExitCode.UNREADABLE_INPUT, found.stderr
    manifest: dict[str, Any] = json.loads((tmp_path / "new" / "manifest.json").read_text())
    assert any(str(failing) in line for line in manifest["not_exact"])
    strict = [*given[:-1], tmp_path / "strict", "--strict"]
    found = disk.run(sys.executable, "-c", _JOB_ON_OTHER_MACHINES, *map(str, strict))
    assert found.returncode == ExitCode.UNREADABLE_INPUT
    assert str(failing) in found.stderr
    assert not (tmp_path / "strict").exists()


def test_a_file_without_a_checksum_is_named(
    inputs: list[Path], disk: FailingDisk, tmp_path: Path
) -> None:
    """F1207: also in a plan, and of a file that the restore does not need."""
    name = "recovery-point-offset-checkpoint"
    failing = inputs[1] / name
    disk.fail_open(failing)
    given: list[str | Path] = ["restore", *inputs, "--as-of", AS_OF, "--topic", "plain"]
    given.append("--hash-inputs")
    found = disk.kafkalog(*given, "--check", "--format", "json")
    assert found.returncode == ExitCode.UNREADABLE_INPUT, found.stderr
    manifest: dict[str, Any] = json.loads(found.stdout)
    assert manifest["input_files"][str(inputs[1])][name]["crc32c"] is None
    assert manifest["input_files"][str(inputs[0])][name]["crc32c"] is not None
    assert any(line.startswith(str(failing)) for line in manifest["not_exact"])
    strict = disk.kafkalog(*given, "--strict", "--to", tmp_path / "new")
    assert strict.returncode == ExitCode.UNREADABLE_INPUT
    assert str(failing) in strict.stderr
    assert not (tmp_path / "new").exists()
