"""Segments of our own that go on where a real broker's log of `__consumer_offsets` ends."""

import os
import shutil
from pathlib import Path

import pytest

from kafkalog.errors import LogDirError, SchemaError
from kafkalog.format.side_files.leader_epochs import EpochStart, read_leader_epochs
from kafkalog.inspection.groups.offset_segments import (
    NEW_LOG,
    AppendPoint,
    end_to_go_on_from,
    last_magic,
    write_commits,
)
from kafkalog.inspection.logs.log_offsets import log_end_offset
from kafkalog.messages.commit_records import COMMIT_FORMS, GroupCommit, form_of_magic
from kafkalog.storage.files.whole_directory import whole_directory
from kafkalog.storage.log_dir.log_dir import CLEAN_SHUTDOWN, find_partitions
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.recovery.recovery import RecoverySettings, plan_recovery
from tests.support.repository import Unpack

NOW_MS = 1_800_000_000_000
COMMITS = [GroupCommit("reader", "orders", number, 40 + number, 6) for number in range(3)]


def offsets_log(log_dir: Path, partition: int) -> PartitionLog:
    logs = find_partitions([str(log_dir)])
    (found,) = [each for each in logs if each.name == f"__consumer_offsets-{partition}"]
    return found


@pytest.fixture
def log_dir(unpacked: Unpack, tmp_path: Path) -> Path:
    """A copy of the log directory of a broker 0.10.2.2 that was stopped cleanly."""
    (offsets,) = unpacked("kafka010.logs").rglob("__consumer_offsets-1")
    shutil.copytree(offsets.parent, tmp_path / "copy")
    (tmp_path / "copy" / CLEAN_SHUTDOWN).touch()
    return tmp_path / "copy"


def test_the_next_segment_begins_where_the_broker_said_that_the_log_ends(log_dir: Path) -> None:
    # F482: by recovery-point-offset-checkpoint.
    ends = {each: end_to_go_on_from([offsets_log(log_dir, each)]).offset for each in (0, 1, 2)}
    assert ends == {0: 33, 1: 22, 2: 4}


def test_the_format_of_the_last_messages_is_that_which_the_broker_wrote(
    log_dir: Path, tmp_path: Path, unpacked: Unpack
) -> None:
    # F480
    assert end_to_go_on_from([offsets_log(log_dir, 1)]).magic == 1
    assert form_of_magic(1) == COMMIT_FORMS["0.10"]
    assert [form_of_magic(magic) for magic in (0, 2)] == [
        COMMIT_FORMS["0.8.2"],
        COMMIT_FORMS["0.11"],
    ]
    (old,) = unpacked("kafka08.logs").rglob("__consumer_offsets-1")
    (new,) = unpacked("kafka39zk.logs").rglob("__consumer_offsets-5")
    assert [
        last_magic(offsets_log(each.parent, number)) for each, number in ((old, 1), (new, 5))
    ] == [0, 2]
    # A segment that has just been begun has none: that before it tells.
    (log_dir / "__consumer_offsets-1" / f"{22:020d}.log").touch()
    assert last_magic(offsets_log(log_dir, 1)) == 1
    empty = tmp_path / "empty" / "__consumer_offsets-1"
    empty.mkdir(parents=True)
    (empty / f"{0:020d}.log").touch()
    assert last_magic(offsets_log(empty.parent, 1)) is None


def test_both_segments_together_are_a_log_that_a_broker_goes_through(
    log_dir: Path, tmp_path: Path
) -> None:
    # F483
    end = end_to_go_on_from([offsets_log(log_dir, 1)])
    form = COMMIT_FORMS["0.10"]
    written = write_commits(str(tmp_path / "new"), 1, end, COMMITS, form, now_ms=NOW_MS)
    assert (written.base_offset, written.end_offset) == (22, 25)
    directory = tmp_path / "new" / "__consumer_offsets-1"
    names = {path.name for path in directory.iterdir()}
    assert names == {f"{22:020d}{kind}" for kind in (".log", ".index", ".timeindex")}
    shutil.copytree(directory, log_dir / "__consumer_offsets-1", dirs_exist_ok=True)
    log = offsets_log(log_dir, 1)
    assert [segment.base_offset for segment in log.segments] == [0, 22]
    assert log_end_offset(log) == 25
    for is_clean in (True, False):
        settings = RecoverySettings(
            is_clean_shutdown=is_clean, log_start_offset=0, now_ms=NOW_MS, index_interval_bytes=4096
        )
        plan = plan_recovery(log.path, settings)
        assert (plan.start_error, plan.cuts, plan.log_end_offset) == (None, [], 25)


def test_a_new_log_has_its_epoch(tmp_path: Path) -> None:
    # F483
    form = COMMIT_FORMS["2.1"]
    write_commits(str(tmp_path), 7, NEW_LOG, COMMITS, form, now_ms=NOW_MS)
    directory = tmp_path / "__consumer_offsets-7"
    epochs = read_leader_epochs((directory / "leader-epoch-checkpoint").read_text())
    assert epochs == [EpochStart(0, 0)]
    (log,) = find_partitions([str(directory)])
    assert log_end_offset(log) == 3


def test_the_oldest_brokers_get_nothing_but_the_segment(tmp_path: Path) -> None:
    # F483: leader epochs came with format 2.
    form = COMMIT_FORMS["0.8.2"]
    write_commits(str(tmp_path), 7, NEW_LOG, COMMITS, form, now_ms=NOW_MS)
    assert {path.suffix for path in (tmp_path / "__consumer_offsets-7").iterdir()} == {
        ".log",
        ".index",
        ".timeindex",
    }


def test_a_log_whose_end_is_not_settled_is_refused(log_dir: Path, tmp_path: Path) -> None:
    # F482
    one = offsets_log(log_dir, 1)
    shutil.copytree(log_dir, tmp_path / "other")
    segment = tmp_path / "other" / "__consumer_offsets-1" / f"{0:020d}.log"
    data = segment.read_bytes()
    segment.write_bytes(data[:-1])
    with pytest.raises(LogDirError, match="ends in damage"):
        end_to_go_on_from([offsets_log(tmp_path / "other", 1)])
    shutil.rmtree(segment.parent)
    shutil.copytree(log_dir / "__consumer_offsets-2", segment.parent)
    with pytest.raises(LogDirError, match=r"copy/__consumer_offsets-1 at 22, .* at 4: let them"):
        end_to_go_on_from([one, offsets_log(tmp_path / "other", 1)])
    (log_dir / CLEAN_SHUTDOWN).unlink()
    with pytest.raises(LogDirError, match="not stopped cleanly"):
        end_to_go_on_from([offsets_log(log_dir, 1)])


def test_nothing_is_written_beside_a_brokers_own_files(log_dir: Path) -> None:
    # F483
    end, form = AppendPoint(22, 0), COMMIT_FORMS["2.1"]
    with pytest.raises(LogDirError, match="is a broker's log directory"):
        write_commits(str(log_dir), 9, end, COMMITS, form, now_ms=NOW_MS)


def test_segments_are_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    # F483: no record has a name of more than 32,767 bytes.
    target, form = tmp_path / "segments", COMMIT_FORMS["2.1"]
    too_long = [GroupCommit("g" * 32_768, "orders", 0, 40, 6)]
    with pytest.raises(SchemaError), whole_directory(str(target), os.fsync) as scratch:
        write_commits(scratch, 0, NEW_LOG, COMMITS, form, now_ms=NOW_MS)
        write_commits(scratch, 1, NEW_LOG, too_long, form, now_ms=NOW_MS)
    assert not list(tmp_path.iterdir())
    with whole_directory(f"{target}/", os.fsync) as scratch:
        write_commits(scratch, 0, NEW_LOG, COMMITS, form, now_ms=NOW_MS)
        assert not target.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["segments"]
    assert [path.name for path in target.iterdir()] == ["__consumer_offsets-0"]
    with pytest.raises(LogDirError, match="exists"), whole_directory(str(target), os.fsync):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["segments"]
