"""What is lost with each replica as the leader, where no broker was asked: other formats' rules,
damage, brokers that stay away, markers. What real brokers did: tests/golden/commands. Rules: F791,
F792, F795."""

from pathlib import Path

import pytest

from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.transaction_marker import COMMIT, TransactionMarker, write_marker
from kafkalog.inspection.partitions.leader_choices import LeaderChoices
from tests.support.logs.samples import batch, consecutive, record
from tests.support.replicas.diverged_replicas import choices, write_replica


def lost(found: LeaderChoices) -> dict[int | None, list[tuple[object, ...]]]:
    """Return the lost ranges of each choice: brokers, first and last offset, records."""
    return {
        found.replicas[number].broker_id: [
            (each.brokers, each.first_offset, each.last_offset, each.records)
            for each in found.loss(number).ranges
        ]
        for number in found.choices
    }


def test_replicas_that_agree_lose_nothing_and_are_not_read(tmp_path: Path) -> None:
    for broker in (1, 2):
        write_replica(tmp_path, broker, consecutive(4))
    found = choices(tmp_path)
    assert lost(found) == {1: [], 2: []}
    assert [len(replica.batches) for replica in found.replicas] == [0, 0]


def test_what_is_truncated_at_the_high_watermark_comes_back_from_the_leader(tmp_path: Path) -> None:
    # Without epochs the follower drops all but the leader has the same.
    write_replica(tmp_path, 1, consecutive(4), epochs=())
    write_replica(tmp_path, 2, consecutive(3), epochs=())
    assert lost(choices(tmp_path)) == {1: [], 2: [((1,), 9, 11, 3)]}


@pytest.mark.parametrize("is_clean", [False, True])
def test_what_recovery_drops_is_lost_unless_another_leads(tmp_path: Path, is_clean: bool) -> None:
    damaged = write_replica(tmp_path, 1, consecutive(4), is_clean=is_clean)
    write_replica(tmp_path, 2, consecutive(4))
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2 + 40] ^= 1  # in the third batch
    damaged.write_bytes(data)
    found = choices(tmp_path)
    if is_clean:
        # A broker checks nothing then: both keep what they have.
        assert lost(found) == {1: [], 2: []}
    else:
        assert found.replicas[0].state.log_end == 6
        assert lost(found) == {1: [((1, 2), 9, 11, 3), ((2,), 6, 8, 3)], 2: []}


def test_what_only_brokers_have_that_stay_away_is_lost(tmp_path: Path) -> None:
    write_replica(tmp_path, 1, [*consecutive(2), batch(6, epoch=1, value=b"one")], ((0, 0), (1, 6)))
    write_replica(tmp_path, 2, consecutive(2))
    write_replica(tmp_path, 3, [*consecutive(2), batch(6, epoch=2, value=b"two")], ((0, 0), (2, 6)))
    both = {1: [((3,), 6, 8, 3)], 2: [((1,), 6, 8, 3), ((3,), 6, 8, 3)], 3: [((1,), 6, 8, 3)]}
    assert lost(choices(tmp_path)) == both
    del both[3]
    assert lost(choices(tmp_path, without=(3,))) == both


def test_what_lies_below_the_log_start_of_the_leader_is_deleted(tmp_path: Path) -> None:
    write_replica(tmp_path, 1, consecutive(4))
    write_replica(tmp_path, 2, consecutive(2, start=6), ((0, 6),), base_offset=6)
    found = choices(tmp_path)
    assert lost(found) == {1: [], 2: []}
    assert [found.loss(number).deleted_records for number in found.choices] == [0, 6]


def test_a_replica_that_has_lost_its_log_loses_all(tmp_path: Path) -> None:
    write_replica(tmp_path, 1, consecutive(4))
    write_replica(tmp_path, 2, [], ())
    assert lost(choices(tmp_path)) == {1: [], 2: [((1,), 0, 11, 12)]}


def test_a_transaction_whose_marker_is_lost_stays_open(tmp_path: Path) -> None:
    fields = BatchFields(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    data = write_batch([record(0), record(1)], fields)
    control = BatchFields(producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    marker = write_marker(TransactionMarker(COMMIT, 0, 2000), 2, control)
    write_replica(tmp_path, 1, [data, marker])
    write_replica(tmp_path, 2, [data])
    write_replica(tmp_path, 3, [], ())
    found = choices(tmp_path)
    fates = [
        [(each.what, each.records) for each in found.loss(number).transactions]
        for number in found.choices
    ]
    assert fates == [[], [("left_open", 0)], [("lost", 2)]]
