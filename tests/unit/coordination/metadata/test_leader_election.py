"""Whom an unclean election elects: by the rules of a 4.4.0 controller. Rule: F793."""

from kafkalog.coordination.metadata.image import Row
from kafkalog.coordination.metadata.leader_election import elected, stopped_for


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
