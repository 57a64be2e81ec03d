"""Sequence numbers as a broker's duplicate check sees them. F125 to F127."""

from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.inspection.partitions.producer_sequences import sequence_rows
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.logs.samples import record
from tests.support.repository import Unpack


def produced(first: int, sequence: int, *, epoch: int = 0, count: int = 2) -> bytes:
    fields = BatchFields(producer_id=7, producer_epoch=epoch, base_sequence=sequence)
    return write_batch([record(first + index) for index in range(count)], fields)


def kinds(tmp_path: Path, *batches: bytes, is_compacted: bool = False) -> list[tuple[str, int]]:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(b"".join(batches))
    (log,) = find_partitions([str(tmp_path)])
    if is_compacted:
        cleaned = {("orders", 0): 1}
        log = replace(log, log_dir=replace(log.log_dir, cleaner_checkpoints=cleaned))
    return [(str(row["kind"]), int(str(row["base_offset"]))) for row in sequence_rows(log)]


def test_numbers_that_follow_on_are_not_a_finding(tmp_path: Path) -> None:
    # F125.
    assert kinds(tmp_path, produced(0, 0), produced(2, 2), produced(4, 4)) == []


def test_numbers_count_on_from_0_behind_the_largest(tmp_path: Path) -> None:
    # F14, F125.
    assert kinds(tmp_path, produced(0, 2**31 - 3), produced(2, 2**31 - 1), produced(4, 1)) == []


def test_the_first_batch_that_is_left_of_a_producer_may_have_any_number(tmp_path: Path) -> None:
    # F125.
    assert kinds(tmp_path, produced(0, 90)) == []


def test_numbers_that_are_left_out_are_a_gap(tmp_path: Path) -> None:
    # F125.
    assert kinds(tmp_path, produced(0, 0), produced(2, 4), produced(4, 6)) == [("gap", 2)]


def test_a_new_epoch_begins_at_0(tmp_path: Path) -> None:
    # F125.
    batches = produced(0, 0), produced(2, 0, epoch=1), produced(4, 3, epoch=2)
    assert kinds(tmp_path, *batches) == [("gap", 4)]


@pytest.mark.parametrize(("between", "kind"), [(4, "duplicate"), (5, "regression")])
def test_a_batch_that_comes_again_is_a_duplicate_while_it_is_remembered(
    between: int, kind: str, tmp_path: Path
) -> None:
    # F126: five batches are remembered.
    batches = [produced(2 * index, 2 * index) for index in range(between + 1)]
    again = 2 * len(batches)
    assert kinds(tmp_path, *batches, produced(again, 0)) == [(kind, again)]


def test_an_older_epoch_is_a_finding(tmp_path: Path) -> None:
    # F127.
    batches = produced(0, 0, epoch=3), produced(2, 2, epoch=2), produced(4, 2, epoch=3)
    assert kinds(tmp_path, *batches) == [("epoch_regression", 2)]


def test_in_a_cleaned_partition_numbers_may_be_missing_but_not_go_back(tmp_path: Path) -> None:
    # F127.
    batches = produced(0, 0), produced(9, 9), produced(11, 3)
    assert kinds(tmp_path, *batches, is_compacted=True) == [("regression", 11)]


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk", "tiered43"])
def test_real_brokers_let_nothing_irregular_in(name: str, unpacked: Unpack) -> None:
    # F125 to F127.
    log_dirs = [path.parent for path in unpacked(f"{name}.logs").rglob("meta.properties")]
    logs = [log for log_dir in log_dirs for log in find_partitions([str(log_dir)])]
    assert [row for log in logs for row in sequence_rows(log)] == []
