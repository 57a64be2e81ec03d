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
