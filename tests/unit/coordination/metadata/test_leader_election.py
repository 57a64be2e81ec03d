"""Whom an unclean election elects: by the rules of a 4.4.0 controller. Rules: F793, and
F1188 to F1190 for brokers that start."""

from kafkalog.coordination.metadata.image import Row
from kafkalog.coordination.metadata.leader_election import (
    ElectionRules,
    StartingBroker,
    elected,
    standing_after_start,
    stopped_for,
)


def partition(
    isr: list[int], eligible: list[int] | None = None, last: list[int] | None = None
) -> Row:
    return {
        "replicas": [3, 1, 2],
        "isr": isr,
        "eligible_leader_replicas": eligible or [],
        "last_known_elr": last or [],
    }


def test_a_replica_in_sync_comes_first_then_an_eligible_one_then_the_last_leader() -> None:
    assert elected(partition([1, 2]), {1, 2, 3}) == 1
    assert elected(partition([], eligible=[2]), {1, 2, 3}) == 2
    # Eligible replicas count only where none is in sync.
    assert elected(partition([1], eligible=[2]), {2, 3}) == 3
    assert elected(partition([], last=[2]), {1, 2, 3}) == 2
    assert elected(partition([], last=[2]), {1, 3}) == 3
    assert elected(partition([2]), {1}) == 1
    assert elected(partition([2]), {9}) is None


def test_who_stands_before_a_choice_is_stopped() -> None:
    assert stopped_for(partition([2]), 2, {1, 2, 3}) == []
    assert stopped_for(partition([2]), 1, {1, 2, 3}) == [2, 3]
    assert stopped_for(partition([2]), 3, {1, 2, 3}) == [2]
    assert stopped_for(partition([2]), 9, {1, 2, 3}) is None


def leader_after_start(
    row: Row, *starting: StartingBroker, running: tuple[int, ...] = (), **rules: bool
) -> int | None:
    row = {"leader": -1, "directories": ["a", "b", "c"], **row}
    return standing_after_start(row, starting, running, ElectionRules(**rules)).leader


# Replica 1 is in directory b.
ONE, UNCLEAN_ONE = StartingBroker(1, ("b",)), StartingBroker(1, ("b",), stopped_cleanly=False)


def test_the_last_replica_in_sync_leads_after_its_start() -> None:
    # F1188.
    assert leader_after_start(partition([1]), ONE) == 1
    assert leader_after_start(partition([1, 2]), ONE) is None
    assert leader_after_start(partition([1, 2]), ONE, running=(2,)) == 2
    assert leader_after_start(partition([1, 2]), ONE, StartingBroker(2, ("c",))) == 2
    assert leader_after_start(partition([1]), StartingBroker(1, ("x",))) is None


def test_one_that_did_not_stop_cleanly_leads_only_as_the_last_leader() -> None:
    # F1189.
    eligible = partition([], eligible=[1, 2], last=[2])
    assert leader_after_start(eligible, ONE, has_eligible=True) == 1
    assert leader_after_start(eligible, UNCLEAN_ONE, has_eligible=True) is None
    led = {**partition([1]), "leader": 1}
    assert leader_after_start(led, UNCLEAN_ONE, has_eligible=True) == 1
    assert leader_after_start(partition([1]), UNCLEAN_ONE) == 1


def test_an_unclean_election_takes_who_runs() -> None:
    # F1190.
    assert leader_after_start(partition([2]), ONE, is_unclean=True) == 1
    assert leader_after_start(partition([2]), ONE) is None
