"""Disks that fail while `kafkalog restore` reads them: docs/restore.md F1206."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkalog.exit_codes import ExitCode
from tests.support.disks.failing_disk import FailingDisk, needs_compiler
from tests.support.golden.restored_copies import AS_OF

pytestmark = needs_compiler


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
