"""Which partitions have a leader once brokers have started. Rule: docs/format.md F1211."""

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.coordination.metadata.leader_election import StartingBroker
from kafkalog.inspection.start.assigned_replicas import NEW_DIRECTORY, Assignments, ReplicaFate
from kafkalog.storage.names import PartitionName

ORDERS = ("orders", 0)


def in_sync_on_one() -> Assignments:
    """Return a partition with replicas on nodes 1 and 2, and only the one on node 1 in sync."""
    image = MetadataImage()
    image.tables["topic"][("id",)] = {"topic": "orders"}
    image.tables["partition"]["id", 0] = {
        "leader": -1,
        "replicas": [1, 2],
        "isr": [1],
        "directories": ["a", "b"],
        "eligible_leader_replicas": [],
        "last_known_elr": [],
    }
    return Assignments.of(image, 2)


def fate_on_two(first: StartingBroker) -> ReplicaFate:
    second = StartingBroker(2, ("b",), present={ORDERS})
    found = in_sync_on_one().starting(second, [first])
    return found.fate("id", PartitionName("orders", 0, None))


def test_a_replica_follows_an_empty_leader_whose_log_directory_is_new() -> None:
    # F1211: brokers led such a partition with no record, at once or from their next start on.
    fate = fate_on_two(StartingBroker(1, ("new",)))
    assert fate.has_leader is None
    assert str(fate.leader_reason).startswith("the log directory of node 1 is new: ")
    own = in_sync_on_one().starting(StartingBroker(1, ("new",)), [])
    ((_, _, absent),) = own.absent(())
    assert (absent.has_leader, absent.begins_empty) == (None, True)
    assert absent.leader_reason == NEW_DIRECTORY


def test_a_directory_that_is_there_or_offline_is_not_made() -> None:
    # F1188, F1211.
    there = StartingBroker(1, ("other",), present={ORDERS})
    offline = StartingBroker(1, ("other",), is_whole=False)
    assert [fate_on_two(each).has_leader for each in (there, offline)] == [False, False]
    assert fate_on_two(StartingBroker(1, ("a",), present={ORDERS})).has_leader is True


def with_zookeeper(leader: int, isr: list[int], running: tuple[int, ...] = ()) -> Assignments:
    """Return a partition of a cluster with ZooKeeper, with replicas on brokers 1 and 2, as broker 2
    finds it; ZooKeeper knows neither directories nor eligible leaders."""
    image = MetadataImage()
    image.tables["topic"][("/orders",)] = {"topic": "orders"}
    image.tables["partition"]["/orders", 0] = {
        "leader": leader,
        "replicas": [1, 2],
        "isr": isr,
        **dict.fromkeys(("directories", "eligible_leader_replicas", "last_known_elr")),
    }
    for each in running:
        image.tables["broker"][(each,)] = {"is_fenced": None, "is_in_controlled_shutdown": None}
    found = Assignments.of(image, 2, is_of_zookeeper=True)
    return found.starting(StartingBroker(2, (), stopped_cleanly=False), [])


def test_a_broker_with_zookeeper_stays_in_sync_where_it_was() -> None:
    # F1405: also after a stop that was not clean, and with brokers 0.10, which know no topic ids.
    name = PartitionName("orders", 0, None)
    assert with_zookeeper(2, [2]).fate(None, name).has_leader
    assert with_zookeeper(1, [1, 2]).fate(None, name).has_leader
    behind = with_zookeeper(1, [1]).fate(None, name)
    assert behind.has_leader is False
    assert "waits for broker 1" in str(behind.leader_reason)
    assert with_zookeeper(1, [1], running=(1,)).fate(None, name).has_leader
    assert with_zookeeper(2, [2]).offline_fate(name).has_leader is False
    assert with_zookeeper(2, [1, 2], running=(1,)).offline_fate(name).has_leader
    ((topic, number, absent),) = with_zookeeper(2, [2]).absent(())
    assert (topic, number, absent.begins_empty) == ("orders", 0, True)


def test_a_directory_of_which_zookeeper_has_no_partition_has_no_leader() -> None:
    # F1405: brokers keep it, and clients hear of no such topic.
    fate = with_zookeeper(2, [2]).fate("id", PartitionName("ghost", 0, None))
    assert (fate.is_set_aside, fate.has_leader) == (False, False)
