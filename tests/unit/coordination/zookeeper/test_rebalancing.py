"""The nine steps of a rebalance, from registries to registries. Rules: F457, F458, F461, F462."""

from itertools import permutations

from kafkalog.coordination.zookeeper.partition_assignment import (
    BrokerPartition,
    ConsumedPartition,
    ThreadId,
)
from kafkalog.coordination.zookeeper.rebalancing import (
    GroupRegistry,
    Rebalance,
    owners_after,
    rebalance,
    rebalanced_owners,
)

PARTITIONS = {"t": [BrokerPartition(number) for number in range(4)]}
A, B, GONE = ThreadId("a", 0), ThreadId("b", 0), ThreadId("gone", 0)


def place(number: int) -> ConsumedPartition:
    return ConsumedPartition("t", BrokerPartition(number))


def test_the_first_consumer_takes_all() -> None:
    # F461
    change = rebalance(GroupRegistry({"a": {"t": 1}}, PARTITIONS, {}), "a")
    assert change == Rebalance((), {place(number): A for number in range(4)}, {})


def test_a_consumer_that_joins_waits_for_the_release() -> None:
    # F461: what b is assigned is a's until a rebalances too
    owners = {place(number): A for number in range(4)}
    registry = GroupRegistry({"a": {"t": 1}, "b": {"t": 1}}, PARTITIONS, owners)
    assert rebalance(registry, "b") == Rebalance((), {}, {place(2): A, place(3): A})
    change = rebalance(registry, "a")
    assert change == Rebalance(tuple(owners), {place(0): A, place(1): A}, {})
    released = registry._replace(owners=owners_after(owners, change))
    assert rebalance(released, "b").claims == {place(2): B, place(3): B}


def test_a_consumer_claims_all_that_it_is_assigned_or_nothing() -> None:
    # F461
    registry = GroupRegistry({"a": {"t": 1}}, PARTITIONS, {place(3): GONE, place(0): A})
    assert rebalance(registry, "a") == Rebalance((place(0),), {}, {place(3): GONE})


def test_all_come_to_the_same_owners_in_whatever_order() -> None:
    # F457: consensus without a word between them
    streams = {"a": {"t": 1}, "b": {"t": 1}, "c": {"t": 1}}
    c = ThreadId("c", 0)
    before = {place(0): c, place(1): c, place(2): A, place(3): B}
    expected = {place(0): A, place(1): A, place(2): B, place(3): c}
    registry = GroupRegistry(streams, PARTITIONS, before)
    for order in permutations(streams):
        assert rebalanced_owners(registry, order) == expected


def test_a_consumer_that_is_missing_keeps_its_partitions_until_its_session_ends() -> None:
    # F461, F449
    registry = GroupRegistry({"a": {"t": 1}, "b": {"t": 1}}, PARTITIONS, {place(0): GONE})
    assert rebalanced_owners(registry) == {place(0): GONE, place(2): B, place(3): B}
    assert rebalanced_owners(registry._replace(owners={}))[place(0)] == A


def test_a_consumer_of_several_topics_is_assigned_each_by_itself() -> None:
    # F458: for each topic that it subscribes to
    partitions = {**PARTITIONS, "u": [BrokerPartition(0)]}
    registry = GroupRegistry({"a": {"t": 1, "u": 1}, "b": {"t": 1}}, partitions, {})
    claims = rebalance(registry, "a").claims
    assert {(at.topic, at.partition.partition) for at in claims} == {("t", 0), ("t", 1), ("u", 0)}


def test_a_consumer_without_partitions_claims_nothing() -> None:
    # F462
    streams = {name: {"t": 1} for name in "abcde"}
    assert rebalance(GroupRegistry(streams, PARTITIONS, {}), "e") == Rebalance((), {}, {})
