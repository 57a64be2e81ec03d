"""What a choice of a leader loses, kept as logs. Rule: F795."""

from pathlib import Path

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.segment_writer import write_segment
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.inspection.partitions.lost_tails import LostTail, finish_tails, write_tails
from tests.support.logs.samples import batch, consecutive, record
from tests.support.replicas.diverged_replicas import choices, write_replica


def kept(home: Path, target: Path, *, leader: int) -> list[LostTail]:
    found = choices(home)
    (number,) = (each for each in found.choices if found.replicas[each].broker_id == leader)
    tails = [*write_tails(found, found.loss(number), str(target), 0)]
    finish_tails(str(target), tails)
    return tails


def logs(target: Path) -> dict[str, bytes]:
    return {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*.log")}


def test_each_broker_keeps_what_it_has_and_one_owns_it(tmp_path: Path) -> None:
    home, target = tmp_path / "brokers", tmp_path / "kept"
    # Recovery drops the damaged third batch, and the fourth with it.
    damaged = write_replica(home, 1, consecutive(4), is_clean=False)
    write_replica(home, 2, consecutive(4))
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2 + 40] ^= 1
    damaged.write_bytes(data)
    tails = kept(home, target, leader=1)
    assert [(tail.directory, tail.owned, tail.end_offset) for tail in tails] == [
        ("broker-1/orders-0", [(9, 12)], 12),
        ("broker-2/orders-0", [(6, 9)], 12),
    ]
    *_, third, fourth = consecutive(4)
    assert logs(target) == {
        f"broker-1/orders-0/{9:020d}.log": fourth,
        f"broker-2/orders-0/{6:020d}.log": third + fourth,
    }


def test_nothing_is_kept_where_nothing_is_lost(tmp_path: Path) -> None:
    for broker in (1, 2):
        write_replica(tmp_path / "brokers", broker, consecutive(4))
    assert kept(tmp_path / "brokers", tmp_path / "kept", leader=1) == []
    assert not (tmp_path / "kept").exists()


def test_a_tail_is_a_log_with_the_segments_of_its_replica(tmp_path: Path) -> None:
    home, target = tmp_path / "brokers", tmp_path / "kept"
    own = [batch(start, epoch=1, value=b"one") for start in (6, 9, 12)]
    first = write_replica(home, 1, [*consecutive(2), own[0]], ((0, 0), (1, 6)))
    (first.parent / "partition.metadata").write_text("version: 0\ntopic_id: " + "A" * 22)
    for name, data in write_segment(own[1:], 9).by_name.items():
        (first.parent / name).write_bytes(data)
    write_replica(home, 2, [*consecutive(2), batch(6, epoch=2)], ((0, 0), (2, 6)))
    (tail,) = kept(home, target, leader=2)
    assert (tail.owned, tail.left_out) == ([(6, 15)], [])
    partition = target / "broker-1" / "orders-0"
    assert logs(target) == {
        f"broker-1/orders-0/{6:020d}.log": own[0],
        f"broker-1/orders-0/{9:020d}.log": own[1] + own[2],
    }
    assert (partition / "leader-epoch-checkpoint").read_text() == "0\n1\n1 6\n"
    assert "topic_id: " + "A" * 22 in (partition / "partition.metadata").read_text()
    log_dir = partition.parent
    assert "node.id=1" in (log_dir / "meta.properties").read_text()
    ends = read_offset_checkpoint((log_dir / "recovery-point-offset-checkpoint").read_text())
    assert ends == {("orders", 0): 15}


def test_a_batch_that_contradicts_an_open_transaction_is_left_out_by_name(tmp_path: Path) -> None:
    # F111: a broker would not start with what follows the transaction at offset 6.
    home, target = tmp_path / "brokers", tmp_path / "kept"
    begun, outside = (
        write_batch(
            [record(offset)],
            BatchFields(
                leader_epoch=1, producer_id=7, producer_epoch=0, base_sequence=0,
                is_transactional=offset == 6,
            ),
        )
        for offset in (6, 7)
    )  # fmt: skip
    write_replica(home, 1, [*consecutive(2), begun, outside], ((0, 0), (1, 6)))
    write_replica(home, 2, [*consecutive(2), batch(6, epoch=2)], ((0, 0), (2, 6)))
    (tail,) = kept(home, target, leader=2)
    assert logs(target) == {f"broker-1/orders-0/{6:020d}.log": begun}
    (line,) = tail.left_out
    assert "producer 7 has a transaction open since offset 6" in line
    assert tail.owned == [(6, 7)]
