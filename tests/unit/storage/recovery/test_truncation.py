"""Where a follower truncates its log: the examples of KIP-101 and KIP-279, and the rules of brokers
that follow by leader epochs. Rules: F790 to F792, F794."""

import pytest

from kafkalog.format.side_files.leader_epochs import EpochEnd, EpochStart, epoch_end, rising
from kafkalog.storage.recovery.truncation import ReplicaLog, resumed_offset, truncated_end


def log(end: int, *epochs: tuple[int, int], start: int = 0, high_watermark: int = 0) -> ReplicaLog:
    return ReplicaLog(start, end, tuple(EpochStart(*each) for each in epochs), high_watermark)


def test_an_epoch_ends_where_the_next_one_begins() -> None:
    # F790
    entries = [EpochStart(2, 10), EpochStart(5, 30)]
    assert epoch_end(entries, 5, 40) == EpochEnd(5, 40)
    assert epoch_end(entries, 2, 40) == EpochEnd(2, 30)
    assert epoch_end(entries, 4, 40) == EpochEnd(2, 30)
    # Earlier than all, and later than all.
    assert epoch_end(entries, 1, 40) == EpochEnd(1, 10)
    assert epoch_end(entries, 6, 40) is None
    assert epoch_end([], 0, 40) is None


@pytest.mark.parametrize(
    ("follower", "leader", "end"),
    [
        pytest.param(log(2, (0, 0)), log(2, (0, 0)), 2, id="the same"),
        pytest.param(log(1, (0, 0)), log(2, (0, 0)), 1, id="behind"),
        # KIP-101, scenario 1: what the high watermark did not cover stays where the leader has it.
        pytest.param(log(2, (0, 0), high_watermark=1), log(2, (0, 0)), 2, id="not by watermark"),
        pytest.param(log(3, (0, 0)), log(2, (0, 0)), 2, id="ahead"),
        # KIP-101, scenario 2: both wrote offset 1, as leaders of different epochs.
        pytest.param(log(2, (0, 0)), log(2, (0, 0), (1, 1)), 1, id="a later leader wrote"),
        pytest.param(log(2, (0, 0), (1, 1)), log(2, (0, 0)), 1, id="an earlier leader is chosen"),
        # KIP-279: unclean elections one after another; the leader's answer is an epoch that the
        # follower does not have, so it asks again.
        pytest.param(
            log(43, (0, 0), (3, 24), (9, 35)), log(33, (0, 0), (5, 24)), 24, id="two steps"
        ),
        pytest.param(
            log(30, (0, 0), (2, 10), (4, 20)), log(30, (0, 0), (1, 5), (3, 15)), 5, id="many steps"
        ),
        pytest.param(log(9, (4, 0)), log(0), 0, id="an empty leader"),
        pytest.param(log(0), log(9, (4, 0)), 0, id="an empty follower"),
        # The follower's epochs end before the leader's log begins.
        pytest.param(log(5, (0, 0)), log(20, (3, 10), start=10), None, id="out of range"),
        pytest.param(log(15, (0, 0)), log(20, (3, 10), start=10), 10, id="older epochs deleted"),
        # Messages of the formats without epochs.
        pytest.param(log(9, high_watermark=4), log(9), 4, id="by watermark"),
        pytest.param(log(9, high_watermark=7), log(5), 5, id="watermark beyond the leader"),
        pytest.param(log(9, high_watermark=2), log(20, start=5), None, id="watermark before it"),
    ],
)
def test_a_follower_truncates(follower: ReplicaLog, leader: ReplicaLog, end: int | None) -> None:
    # F791, F792
    assert truncated_end(follower, leader) == end


def test_entries_that_contradict_each_other_end_all_the_same() -> None:
    entries = rising([EpochStart(7, 2), EpochStart(5, 9), EpochStart(3, 2), EpochStart(1, 0)])
    assert entries == [EpochStart(1, 0), EpochStart(7, 2)]


def test_a_consumer_goes_on_where_its_epoch_ends() -> None:
    # F794, KIP-320
    leader = log(40, (0, 0), (5, 24), start=3)
    assert resumed_offset(leader, 30, 5) == 30
    assert resumed_offset(leader, 30, 4) == 24  # the leader of epoch 4 wrote what is not here
    assert resumed_offset(leader, 50, 5) == 40
    assert resumed_offset(leader, 30, None) == 30
    assert resumed_offset(leader, 50, None) is None
    assert resumed_offset(leader, 2, 0) is None
