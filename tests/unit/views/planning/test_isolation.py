"""Committed records of files that are no longer, or never were, part of the log that is there."""

import shutil
from pathlib import Path

import pytest

from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.storage.log_dir.log_dir import with_segments_of_now
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading import reading
from tests.support.logs.committed_reads import committed_offsets, committed_options, rows_of
from tests.support.logs.damageable_logs import SampleLog, log_name

START_MS = 1_700_000_000_000


@pytest.fixture
def log() -> SampleLog:
    """Offsets 0 to 2 aborted, 4 to 6 committed; in the next segment 8 and 9 plain."""
    log = SampleLog(START_MS)
    log.add(3, 7, in_transaction=True)
    log.end(7, ABORT)
    log.add(3, 7, in_transaction=True)
    log.end(7, COMMIT)
    log.roll()
    log.add(2)
    return log


@pytest.fixture
def partition(log: SampleLog, tmp_path: Path) -> Path:
    log.write(tmp_path / "orders-0", 4096)
    return tmp_path / "orders-0"


def mark_deleted(partition: Path, base_offset: int) -> None:
    for path in partition.glob(log_name(base_offset, ".*")):
        path.rename(path.with_name(path.name + ".deleted"))


def test_a_deleted_file_is_read_with_its_own_markers(partition: Path) -> None:
    # F210
    mark_deleted(partition, 0)
    assert committed_offsets(partition / log_name(0, ".log.deleted")) == [4, 5, 6]


def test_a_file_behind_the_last_stable_offset_has_no_rows(tmp_path: Path) -> None:
    # F214: its log has an open transaction in an earlier segment.
    log = SampleLog(START_MS)
    log.add(2, 7, in_transaction=True)
    log.roll()
    behind = log.add(2)
    log.write(tmp_path / "orders-0", 4096)
    assert committed_offsets(tmp_path / "orders-0" / log_name(behind.segment)) == []


def test_a_segment_that_retention_takes_meanwhile_keeps_its_markers(partition: Path) -> None:
    # F210, F94
    options = committed_options([partition])
    groups = planned_groups(options)
    mark_deleted(partition, 0)
    assert rows_of(groups, options, ("offset",)) == [(4,), (5,), (6,), (8,), (9,)]


def test_files_without_offsets_in_their_names_are_logs_of_their_own(tmp_path: Path) -> None:
    # F210, F214: each has a transaction of 7, one aborted, one committed.
    folder = tmp_path / "found"
    folder.mkdir()
    for name, kind in (("a", ABORT), ("b", COMMIT)):
        log = SampleLog(START_MS)
        log.add(3, 7, in_transaction=True)
        log.end(7, kind)
        log.add(1)
        log.write(tmp_path / f"{name}-0", 4096)
        shutil.copy(tmp_path / f"{name}-0" / log_name(0), folder / f"{name}.log")
    options = committed_options([folder / "a.log", folder / "b.log"])
    rows = rows_of(planned_groups(options), options, ("file", "offset"))
    found = sorted((Path(file).name, offset) for file, offset in rows)
    assert found == [("a.log", 4), *(("b.log", offset) for offset in (0, 1, 2, 4))]


def test_a_later_segment_that_is_missing_when_it_is_looked_into_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F212: it was listed, and then deleted.
    log = SampleLog(START_MS)
    log.add(3, 7, in_transaction=True)
    log.roll()
    commit = log.end(7, COMMIT)
    log.roll()
    log.add(2)
    log.write(tmp_path / "orders-0", 4096)
    options = committed_options([tmp_path / "orders-0"], mode="PERMISSIVE", failOnDataLoss="false")
    groups = planned_groups(options)

    def listed_too_early(log: PartitionLog) -> PartitionLog:
        found = with_segments_of_now(log)
        for file in Path(log.path).glob(log_name(commit.segment, ".*")):
            file.unlink()
        return found

    monkeypatch.setattr(reading, "with_segments_of_now", listed_too_early)
    assert rows_of(groups, options, ("offset",)) == [(4,), (5,)]
