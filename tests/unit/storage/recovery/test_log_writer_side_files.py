"""What a writer of logs leaves beside the segments: transactions, producers, leader epochs."""

import struct
from pathlib import Path

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.indexes import read_transaction_index
from kafkalog.format.side_files.leader_epochs import read_leader_epochs
from kafkalog.format.side_files.producer_snapshot import read_producer_snapshot
from kafkalog.storage.recovery.producer_state import BrokerStartError
from tests.support.logs.samples import record
from tests.unit.storage.written_logs import Machine, bases, log_of, writer


def marker(offset: int, kind: int) -> bytes:
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 6)
    fields = BatchFields(producer_id=9, producer_epoch=0, is_transactional=True, is_control=True)
    return write_batch([Record(offset, 1000, 0, key, value)], fields)


def sent(offset: int, sequence: int, *, is_transactional: bool = True) -> bytes:
    fields = BatchFields(
        producer_id=9,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=is_transactional,
        leader_epoch=offset // 5,
    )
    return write_batch([record(offset)], fields)


@pytest.fixture
def transactions(place: Path, machine: Machine) -> Path:
    """Offset 0 and its abort, offset 2 and its commit, offset 4 in a segment of its own."""
    with writer(place, machine, segment_bytes=4 * len(marker(0, 0)) + 40) as log:
        for each in (sent(0, 0), marker(1, 0), sent(2, 1), marker(3, 1), sent(5, 2)):
            log.append(each)
    return place


def test_aborted_transactions_go_to_the_index_of_the_markers_segment(transactions: Path) -> None:
    # F104, F112
    index = (transactions / f"{0:020d}.txnindex").read_bytes()
    assert read_transaction_index(index) == [(9, 0, 1, 2)]
    assert len(list(transactions.glob("*.txnindex"))) == 1


def test_snapshots_of_the_producers_are_taken_at_segments_and_at_the_end(
    transactions: Path,
) -> None:
    # F105, F106, F110
    offsets = [int(path.stem) for path in sorted(transactions.glob("*.snapshot"))]
    assert offsets == [*bases(transactions)[1:], 6]
    (entry,) = read_producer_snapshot((transactions / f"{6:020d}.snapshot").read_bytes())
    assert entry.last_sequence == 2
    assert entry.transaction_first_offset == 5


def test_leader_epochs_are_written_when_they_begin(transactions: Path) -> None:
    # F107, F116
    text = (transactions / "leader-epoch-checkpoint").read_text()
    assert read_leader_epochs(text) == [(0, 0), (1, 5)]


def test_a_batch_outside_its_producers_open_transaction_is_refused(
    place: Path, machine: Machine
) -> None:
    # F111: no broker would start with it.
    with writer(place, machine) as log:
        log.append(sent(0, 0))
        with pytest.raises(BrokerStartError):
            log.append(sent(1, 1, is_transactional=False))
    assert log_of(place, 0) == sent(0, 0)
