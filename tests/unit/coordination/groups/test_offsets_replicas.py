"""Whether the input has all replicas of the partition that a group commits to."""

from kafkalog.coordination.groups.offsets_replicas import OffsetsReplicas

NAMED = {0: frozenset({1, 2}), 1: frozenset({2, 3}), 2: frozenset({1})}
GIVEN = {0: frozenset({1, 2}), 2: frozenset({1, 4})}
REPLICAS = OffsetsReplicas(has_topic=True, named=NAMED, given=GIVEN)


def test_commits_are_known_where_every_broker_that_the_znode_names_is_given() -> None:
    # F486
    assert REPLICAS.fault(0) is None
    assert REPLICAS.fault(2) is None


def test_brokers_whose_replicas_are_not_given_are_named() -> None:
    # F486
    assert REPLICAS.fault(1) == "__consumer_offsets-1 of brokers 2, 3 is missing"
    without = OffsetsReplicas(has_topic=True, named=NAMED, given={0: frozenset({1})})
    assert without.fault(0) == "__consumer_offsets-0 of broker 2 is missing"
    assert REPLICAS.missing_brokers() == {2, 3}
    assert without.missing_brokers() == {1, 2, 3}


def test_replicas_that_no_znode_names_are_not_known() -> None:
    # F486
    told = "no znode says which brokers have __consumer_offsets-7"
    assert REPLICAS.fault(7) == told
    assert OffsetsReplicas(has_topic=True, given={7: frozenset({1})}).fault(7) == told
    assert OffsetsReplicas(has_topic=True, named={7: frozenset()}).fault(7) == told
    assert "how many partitions" in (REPLICAS.fault(None) or "")


def test_a_cluster_without_the_topic_has_no_commits_in_kafka() -> None:
    # F486
    assert OffsetsReplicas(has_topic=False).fault(7) is None
    assert OffsetsReplicas(has_topic=False).fault(None) is None
