"""Which marker ends a batch's transaction, where replicas differ or parts of a log are missing."""

from pathlib import Path

from kafkalog.format.side_files.producer_snapshot import write_producer_snapshot
from kafkalog.format.transaction_marker import ABORT, COMMIT
from tests.support.logs.committed_reads import committed_offsets
from tests.support.logs.damageable_logs import SampleBatch, SampleLog, flip, log_name

START_MS = 1_700_000_000_000


def replicas(tmp_path: Path, *logs: SampleLog) -> list[Path]:
    """A log directory for each broker."""
    dirs = [tmp_path / str(number) for number in range(len(logs))]
    for number, (directory, log) in enumerate(zip(dirs, logs, strict=True)):
        log.write(directory / "orders-0", 4096)
        (directory / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={number}\n")
    return dirs


def offsets_of(*batches: SampleBatch) -> list[int]:
    return [record.offset for batch in batches for record in batch.records]


def without(directory: Path, pattern: str) -> None:
    for path in directory.glob(pattern):
        path.unlink()


def best_offsets(*dirs: Path) -> list[int]:
    return committed_offsets(*dirs, replicas="best", mode="PERMISSIVE")


def test_a_transaction_index_knows_nothing_of_a_lost_segment(tmp_path: Path) -> None:
    # F212: the abort of 7 is lost, and both other segments have whole indexes, without it.
    log = SampleLog(START_MS)
    before = log.add(2)
    log.add(1, 9, in_transaction=True)
    log.end(9, ABORT)
    log.add(3, 7, in_transaction=True)
    log.roll()
    lost = log.end(7, ABORT)
    log.roll()
    committed = log.add(3, 7, in_transaction=True)
    log.end(7, COMMIT)
    log.add(1, 9, in_transaction=True)
    log.end(9, ABORT)
    log.write(tmp_path / "orders-0", 4096)
    without(tmp_path / "orders-0", log_name(lost.segment, ".*"))
    read = committed_offsets(tmp_path / "orders-0", mode="PERMISSIVE")
    assert read == offsets_of(before, committed)


def test_an_empty_transaction_index_shows_nothing(tmp_path: Path) -> None:
    # F212
    log = SampleLog(START_MS)
    log.add(3, 7, in_transaction=True)
    abort = log.end(7, ABORT)
    committed = log.add(3, 7, in_transaction=True)
    log.end(7, COMMIT)
    log.write(tmp_path / "orders-0", 4096)
    flip(tmp_path / "orders-0", abort)
    (tmp_path / "orders-0" / log_name(0, ".txnindex")).write_bytes(b"")
    read = committed_offsets(tmp_path / "orders-0", mode="PERMISSIVE")
    assert read == offsets_of(committed)


def test_a_transaction_that_no_marker_ends_makes_no_rows(tmp_path: Path) -> None:
    # F212: a snapshot that is another log's says that nothing is open.
    log = SampleLog(START_MS)
    before = log.add(2)
    log.add(3, 7, in_transaction=True)
    log.roll()
    behind = log.add(2)
    log.write(tmp_path / "orders-0", 4096)
    snapshot = tmp_path / "orders-0" / log_name(behind.segment, ".snapshot")
    snapshot.write_bytes(write_producer_snapshot([]))
    read = committed_offsets(tmp_path / "orders-0", mode="PERMISSIVE")
    assert read == offsets_of(before, behind)


def test_a_replica_that_begins_behind_a_batch_does_not_tell_its_end(tmp_path: Path) -> None:
    # F212: its first marker of 7 is a commit, of another transaction.
    log = SampleLog(START_MS)
    before = log.add(2)
    log.add(3, 7, in_transaction=True)
    log.roll()
    abort = log.end(7, ABORT)
    plain = log.add(1)
    log.roll()
    committed = log.add(3, 7, in_transaction=True)
    log.end(7, COMMIT)
    damaged, short = replicas(tmp_path, log, log)
    flip(damaged / "orders-0", abort)
    for directory in (damaged, short):
        without(directory / "orders-0", "*.txnindex")
    for segment in (0, abort.segment):
        without(short / "orders-0", log_name(segment, ".*"))
    assert best_offsets(damaged, short) == offsets_of(before, plain, committed)


def test_a_replica_of_another_lineage_does_not_tell_a_transactions_end(tmp_path: Path) -> None:
    # F212: where the best replica has the abort of 7, the one that was cut off has a commit.
    best, other = SampleLog(START_MS), SampleLog(START_MS)
    for log in (best, other):
        before = log.add(2)
        log.add(3, 7, in_transaction=True)
    best.epoch, other.epoch = 2, 1
    abort = best.end(7, ABORT)
    committed = best.add(3, 7, in_transaction=True)
    best.end(7, COMMIT)
    other.end(7, COMMIT)
    other.add(1)
    dirs = replicas(tmp_path, best, other)
    flip(dirs[0] / "orders-0", abort)
    without(dirs[0] / "orders-0", "*.txnindex")
    assert best_offsets(*dirs) == offsets_of(before, committed)


def test_a_segment_is_not_passed_over_where_damage_may_hide_whose_transactions_end_in_it(
    tmp_path: Path,
) -> None:
    # F213: the batch of 8 comes from the other replica, and 9's is open in all of the next segment.
    log = SampleLog(START_MS)
    log.add(1, 5, in_transaction=True)
    log.end(5, ABORT)
    open_for_long = log.add(2, 9, in_transaction=True)
    damaged = log.add(3, 8, in_transaction=True)
    before = log.add(1)
    log.roll()
    log.end(8, ABORT)
    behind = log.add(1)
    log.roll()
    log.end(9, COMMIT)
    last = log.add(1)
    dirs = replicas(tmp_path, log, log)
    flip(dirs[0] / "orders-0", damaged)
    assert best_offsets(*dirs) == offsets_of(open_for_long, before, behind, last)


def test_an_open_transaction_that_only_another_replica_shows_makes_no_rows(tmp_path: Path) -> None:
    # F212: the best replica has no batch there, and a whole index that is silent about it.
    log = SampleLog(START_MS)
    before = log.add(2)
    log.add(2, 8, in_transaction=True)
    still_open = log.add(3, 7, in_transaction=True)
    log.end(8, ABORT)
    behind = log.add(1)
    dirs = replicas(tmp_path, log, log)
    flip(dirs[0] / "orders-0", still_open, at=16)
    assert best_offsets(*dirs) == offsets_of(before, behind)
