"""What became of transactions, where logs are damaged or only part of one is there."""

import logging
import shutil
from pathlib import Path

import pytest

from kafkalog.columns.transactions.transaction_walk import stable_offset
from kafkalog.errors import CorruptDataError
from kafkalog.format.transaction_marker import ABORT, COMMIT
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.logs.committed_reads import committed_offsets as offsets
from tests.support.logs.damageable_logs import (
    SampleBatch,
    SampleLog,
    Transactions,
    flip,
    log_name,
    transactions,
)

START_MS = 1_700_000_000_000


@pytest.fixture
def made() -> Transactions:
    """Offsets 0 to 9 plain, 10 to 19 committed, 20 to 29 aborted, 31 to 40 aborted, 43 to 52
    committed, 54 to 63 plain."""
    return transactions(START_MS)


@pytest.fixture
def partition(made: Transactions, tmp_path: Path) -> Path:
    return write(made.log, tmp_path)


def write(log: SampleLog, log_dir: Path) -> Path:
    log.write(log_dir / "orders-0", 4096)
    return log_dir / "orders-0"


def offsets_of(*batches: SampleBatch) -> list[int]:
    return [record.offset for batch in batches for record in batch.records]


def test_aborted_records_are_left_out_whatever_segment_their_marker_is_in(
    made: Transactions, partition: Path
) -> None:
    # F210, F211; T16: the transaction of offsets 20 to 29 ends in the next segment.
    assert offsets(partition) == offsets_of(made.loose, made.first, made.last, made.tail)


def test_a_single_file_is_read_with_what_its_directory_knows(
    made: Transactions, partition: Path
) -> None:
    # T16
    assert offsets(partition / log_name(0)) == offsets_of(made.loose, made.first)


def test_a_file_that_is_alone_ends_where_its_first_open_transaction_begins(
    made: Transactions, partition: Path, tmp_path: Path
) -> None:
    # T17
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(partition / log_name(0), alone)
    assert offsets(alone / log_name(0)) == offsets_of(made.loose, made.first)


def test_a_bounded_read_looks_for_markers_behind_its_end(
    made: Transactions, partition: Path
) -> None:
    # T16
    read = offsets(partition, subscribe="orders", endingOffsets='{"orders":{"0":25}}')
    assert read == offsets_of(made.loose, made.first)


def test_a_damaged_marker_makes_no_row_where_nothing_else_tells(
    made: Transactions, partition: Path
) -> None:
    # F212: without its abort marker the next one of producer 4711 would make 31 to 40 committed.
    flip(partition, made.abort)
    for index in partition.glob("*.txnindex"):
        index.unlink()
    sound = offsets_of(made.loose, made.first, made.last, made.tail)
    assert offsets(partition, mode="PERMISSIVE") == sound


@pytest.fixture
def hidden(tmp_path: Path) -> tuple[Path, SampleBatch, SampleBatch]:
    """A log whose abort marker is damaged: its place, the aborted batch, and a committed one of the
    same producer behind the damage."""
    log = SampleLog(START_MS)
    aborted = log.add(3, 7, in_transaction=True)
    log.roll()
    marker = log.end(7, ABORT)
    committed = log.add(3, 7, in_transaction=True)
    log.end(7, COMMIT)
    place = write(log, tmp_path / "hidden")
    flip(place, marker)
    return place, aborted, committed


def test_a_transaction_index_tells_what_damage_hides(
    hidden: tuple[Path, SampleBatch, SampleBatch],
) -> None:
    # F212
    place, _, committed = hidden
    assert offsets(place, mode="PERMISSIVE") == offsets_of(committed)
    assert offsets(place / log_name(0)) == []


def test_failfast_names_damage_after_what_is_asked(
    hidden: tuple[Path, SampleBatch, SampleBatch],
) -> None:
    # F212: the range is sound, and whether it was aborted is unknown.
    place, aborted, _ = hidden
    for index in place.glob("*.txnindex"):
        index.unlink()
    first = place / log_name(0)
    with pytest.raises(CorruptDataError, match="damage further on may hide") as caught:
        offsets(first)
    assert caught.value.fault == "transaction"
    assert caught.value.base_offset == offsets_of(aborted)[0]
    assert offsets(first, mode="PERMISSIVE") == []


def test_a_lost_segment_hides_markers(tmp_path: Path) -> None:
    # F212: the abort is missing with its segment, and the commit is of another transaction.
    log = SampleLog(START_MS)
    before = log.add(2)
    log.add(3, 7, in_transaction=True)
    log.roll()
    log.end(7, ABORT)
    log.roll()
    committed = log.add(3, 7, in_transaction=True)
    log.end(7, COMMIT)
    partition = write(log, tmp_path)
    for path in partition.glob(log_name(5, ".*")):
        path.unlink()
    assert offsets(partition, mode="PERMISSIVE") == offsets_of(before, committed)
    with pytest.raises(CorruptDataError, match="damage further on may hide"):
        offsets(partition)


def test_an_open_transaction_whose_marker_is_lost_stays_open(
    made: Transactions, partition: Path
) -> None:
    # F214: as a broker has it; without the segment with the abort of producer 4712.
    for path in {*partition.glob(log_name(31, ".*")), *partition.glob("*.snapshot")}:
        path.unlink()
    assert offsets(partition) == offsets_of(made.loose, made.first)


def test_a_damaged_index_is_not_asked(made: Transactions, partition: Path) -> None:
    # F212: an index without an abort that the log shows proves nothing.
    flip(partition, made.abort)
    index = partition / log_name(31, ".txnindex")
    index.write_bytes(index.read_bytes()[34:68])
    read = offsets(partition, mode="PERMISSIVE")
    assert not set(read) & set(offsets_of(made.other, made.aborted))


def test_an_open_transaction_keeps_back_what_is_after_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # F214, T17
    log = SampleLog(START_MS)
    before = log.add(4)
    log.add(2, 7, in_transaction=True)
    log.add(5, 8, in_transaction=True)
    log.end(8, COMMIT)
    log.add(3)
    partition = write(log, tmp_path)
    with caplog.at_level(logging.WARNING):
        assert offsets(partition) == offsets_of(before)
    assert "orders-0 is read up to its last stable offset 4: producer 7 has a" in caplog.text


def test_a_marker_that_the_high_watermark_has_not_passed_decides_nothing(tmp_path: Path) -> None:
    # F214
    log = SampleLog(START_MS)
    before = log.add(4)
    log.add(2, 7, in_transaction=True)
    log.end(7, COMMIT)
    partition = write(log, tmp_path)
    (tmp_path / ".kafka_cleanshutdown").touch()
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 6\n")
    (found,) = find_partitions([str(partition)])
    assert stable_offset(found).offset == 4
    assert offsets(partition) == offsets_of(before)


def test_a_snapshot_from_above_the_high_watermark_is_not_gone_by(tmp_path: Path) -> None:
    # F214: the last segment begins, and a snapshot was taken, behind the marker.
    log = SampleLog(START_MS)
    log.add(4)
    log.add(2, 7, in_transaction=True)
    log.end(7, COMMIT)
    log.roll()
    log.add(1)
    partition = write(log, tmp_path)
    (tmp_path / ".kafka_cleanshutdown").touch()
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 6\n")
    (found,) = find_partitions([str(partition)])
    assert stable_offset(found).offset == 4


def test_a_marker_without_data_ends_nothing(tmp_path: Path) -> None:
    # F210
    log = SampleLog(START_MS)
    log.end(7, ABORT)
    kept = log.add(2, 7, in_transaction=True)
    log.end(7, COMMIT)
    log.end(7, ABORT)
    plain = log.add(2, 7)
    assert offsets(write(log, tmp_path)) == offsets_of(kept, plain)


def test_plain_batches_of_a_producer_are_never_aborted(tmp_path: Path) -> None:
    # F210, T18
    log = SampleLog(START_MS)
    plain = log.add(2, 7)
    log.add(2, 7, in_transaction=True)
    between = log.add(2)
    log.end(7, ABORT, producer_epoch=1)
    assert offsets(write(log, tmp_path)) == offsets_of(plain, between)


def test_a_snapshot_from_before_the_log_begins_holds_nothing_back(tmp_path: Path) -> None:
    # F214: the marker of what was open then is missing with its segment, as a copy of a log has it.
    log = SampleLog(START_MS)
    log.add(3, 7, in_transaction=True)
    log.roll()
    marker = log.end(7, COMMIT)
    log.roll()
    kept = log.add(3)
    partition = write(log, tmp_path)
    for path in partition.iterdir():
        if path.name not in (log_name(kept.segment), log_name(marker.segment, ".snapshot")):
            path.unlink()
    assert offsets(partition) == offsets_of(kept)
