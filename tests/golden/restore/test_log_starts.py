"""Records that a client deletes before and after the moment. In set restore44 a client deleted the
records of `plain-0` below offset 60 at 19:48:35.9 (ledgers/metadata); the archive has no times of
files, so that the tests set those that the brokers' files had.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.side_files.leader_epochs import read_leader_epochs
from tests.support.golden.restored_copies import Restored, copied, records, restore

DELETED = 60
BEFORE, AFTER = "2026-11-25T19:48:30Z", "2026-11-25T19:48:40Z"
LOG_STARTS = "log-start-offset-checkpoint"
EPOCHS = "plain-0/leader-epoch-checkpoint"
MADE, AT_ONCE, CHECKPOINTED = 1795636089, 1795636115, 1795636117
# The second in which the batch of offset 800 came.
BEGUN = 1795636120


@pytest.fixture
def copies(inputs: list[Path], tmp_path: Path) -> list[Path]:
    """The disks, with the times of their files."""
    found = copied(inputs, tmp_path)
    for path in found:
        set_times(path, MADE, AT_ONCE, CHECKPOINTED)
    return found


def set_times(copy: Path, *seconds: int) -> None:
    for name, time in zip(("plain-0/partition.metadata", EPOCHS, LOG_STARTS), seconds, strict=True):
        if (copy / name).exists():
            os.utime(copy / name, (time, time))


def plain(inputs: list[Path], as_of: str) -> tuple[dict[str, Any], list[str]]:
    result = restore(inputs, "--as-of", as_of, "--check", "--format", "json", "--topic", "plain")
    manifest = json.loads(result.output)
    named = [line for line in manifest["not_exact"] if line.startswith("plain-0")]
    return manifest["partitions"][0], named


def test_records_deleted_after_the_moment_are_there(copies: list[Path], tmp_path: Path) -> None:
    """F1205: with the leader epochs of their batches."""
    target = tmp_path / "restored"
    result = restore(copies, "--as-of", BEFORE, "--to", str(target), "--topic", "plain")
    assert f"deleted the records before offset {DELETED} at 2026-11-25T19:48:35" in result.output
    found = Restored(target, json.loads((target / "manifest.json").read_text()), copies)
    offsets = [offset for offset, _, _ in records(found.logs()["plain", 0])]
    assert offsets[:DELETED] == [*range(DELETED)]
    epochs = read_leader_epochs((found.data / EPOCHS).read_text())
    assert (epochs[0].epoch, epochs[0].start_offset) == (0, 0)
    assert "plain 0" not in (found.data / LOG_STARTS).read_text()


def test_records_deleted_before_the_moment_stay_deleted(copies: list[Path]) -> None:
    """F1204: and nothing is said, because files from before the moment show it."""
    row, named = plain(copies, AFTER)
    assert row["log_start_offset"] == DELETED
    assert named == []


def test_a_checkpoint_that_is_older_than_the_deletion(copies: list[Path]) -> None:
    """F1204: brokers write it once a minute, the leader epochs at once."""
    for copy in copies:
        (copy / LOG_STARTS).write_text("0\n0\n")
        set_times(copy, MADE, AT_ONCE, MADE)
    row, named = plain(copies, AFTER)
    assert row["log_start_offset"] == DELETED
    assert named == []


@pytest.mark.parametrize("seconds", [0, 1795700000])
@pytest.mark.parametrize("as_of", [BEFORE, AFTER])
def test_copies_without_the_times_of_files_are_named(
    copies: list[Path], as_of: str, seconds: int
) -> None:
    """F1204: nothing says when the records were deleted."""
    for copy in copies:
        set_times(copy, seconds, seconds, seconds)
    row, named = plain(copies, as_of)
    assert row["log_start_offset"] == DELETED
    assert len(named) == 1
    assert "nothing says" in named[0]


def test_an_epoch_that_began_after_the_deletion_hides_its_time(copies: list[Path]) -> None:
    """F1205: the file was written again, for an epoch whose first batch is as late."""
    for copy in copies:
        epochs = (copy / EPOCHS).read_text().splitlines()
        (copy / EPOCHS).write_text("\n".join(["0", "4", *epochs[2:], "9 800", ""]))
        set_times(copy, MADE, BEGUN, BEGUN)
    row, named = plain(copies, BEFORE)
    assert row["log_start_offset"] == DELETED
    assert "nothing says" in named[0]
