"""What an audit of old consumers finds, each finding in a tree made for it. Rules: F438, F444 to
F449, F457, F462, F464, F466, F469."""

from collections.abc import Collection

import pytest

from kafkalog.coordination.zookeeper.consumer_audit import (
    MOST_ASSIGNED_STREAMS,
    GroupAudit,
    group_audit,
)
from kafkalog.coordination.zookeeper.disk_audit import (
    Disk,
    DiskPartition,
    disk_findings,
    wildcard_hits,
)
from tests.support.zookeeper.clusters import SESSION, Tree, cluster_of, consumer, topic

G = "/consumers/g"
SOUND = {
    "/brokers/topics/t": topic(2),
    f"{G}/ids/a": consumer("t"),
    f"{G}/ids/b": consumer("t"),
    f"{G}/owners/t/0": "a-0",
    f"{G}/owners/t/1": "b-0",
    f"{G}/offsets/t/0": "5",
    f"{G}/offsets/t/1": "0",
}


def audit(tree: Tree, sessions: Collection[int] | None = (SESSION,)) -> GroupAudit:
    cluster = cluster_of(tree)
    return group_audit("g", cluster.groups["g"], cluster, sessions)


def found(tree: Tree, sessions: Collection[int] | None = (SESSION,)) -> list[tuple[str, str]]:
    audited = audit(tree, sessions)
    of_partitions = [finding for partition in audited.partitions for finding in partition.findings]
    return [(finding.finding, finding.detail) for finding in (*of_partitions, *audited.findings)]


def without(*paths: str) -> dict[str, str]:
    return {path: data for path, data in SOUND.items() if path not in paths}


def test_nothing_is_found_where_all_is_as_it_should_be() -> None:
    audited = audit(SOUND)
    assert audited.findings == []
    assert [(p.assigned, p.owner and p.owner.owner, p.strategy) for p in audited.partitions] == [
        ("a-0", "a-0", "range or roundrobin"),
        ("b-0", "b-0", "range or roundrobin"),
    ]
    assert found(SOUND) == []


def test_a_partition_without_an_owner() -> None:
    # F449
    assert found(without(f"{G}/owners/t/1")) == [
        ("partition_without_owner", "no consumer has claimed what b-0 is assigned")
    ]


def test_an_owner_whose_session_has_ended() -> None:
    # F449
    assert ("owner_without_session", "session 0x1000 of a-0 has ended") in found(SOUND, ())
    assert found(SOUND, None) == []


def test_an_owner_that_is_not_registered() -> None:
    # F449: and what it should have no more is another's
    kinds = [kind for kind, _ in found(without(f"{G}/ids/b"))]
    assert kinds == ["owner_not_registered"]


def test_an_owner_that_is_assigned_something_else() -> None:
    # F457
    tree = {**SOUND, f"{G}/owners/t/1": "a-0"}
    assert found(tree) == [("owner_not_assigned", "a-0 owns what b-0 is assigned")]
    assert audit(tree).partitions[0].strategy is None


def test_round_robin_shows_where_owners_agree_with_nothing_else() -> None:
    # F464
    tree = {
        "/brokers/topics/t": topic(4),
        f"{G}/ids/a": consumer("t"),
        f"{G}/ids/b": consumer("t"),
        **{f"{G}/owners/t/{number}": f"{'ab'[number % 2]}-0" for number in range(4)},
    }
    audited = audit(tree)
    assert {partition.strategy for partition in audited.partitions} == {"roundrobin"}
    assert found(tree) == []


def test_a_consumer_without_partitions() -> None:
    # F462
    tree = {**SOUND, f"{G}/ids/c": consumer("t")}
    assert found(tree) == [("consumer_without_partitions", "assigned nothing of t")]
    assert audit(tree).findings[0].consumer_id == "c"
    nowhere = {**SOUND, f"{G}/ids/c": consumer("x")}
    assert found(nowhere) == [
        ("consumer_without_partitions", "assigned nothing of an existing topic")
    ]


@pytest.mark.parametrize(
    ("path", "data", "expected"),
    [
        ("x/0", "1", ("offset_for_missing_topic", "topic x is not registered")),
        ("t/7", "1", ("offset_for_missing_partition", "t has no 7")),
        ("t/0-1", "1", ("offset_for_missing_partition", "t has no 0-1")),
        ("t/1", "1e3", ("offset_not_decimal", "no decimal number of 64 bits: '1e3'")),
        ("t/1", "-1", ("offset_negative", "offset -1")),
        ("t/x", "1", ("name_unreadable", f"{G}/offsets/t/x: the name is not a partition: 'x'")),
    ],
)
def test_offsets_that_are_none(path: str, data: str, expected: tuple[str, str]) -> None:
    # F448
    assert found({**SOUND, f"{G}/offsets/{path}": data}) == [expected]


def test_a_group_that_has_offsets_and_no_members() -> None:
    # F444
    tree = {"/brokers/topics/t": topic(1), f"{G}/offsets/t/0": "1", f"{G}/ids": None}
    assert found(tree) == [("group_without_members", "1 offset and no consumer")]


def test_what_cannot_be_assigned_is_not_judged() -> None:
    # F446, F456: a filter that is not supported, data that is none, streams without end
    for data in (consumer("(?!t).*", pattern="white_list"), "?"):
        tree = {**SOUND, f"{G}/ids/c": data}
        assert [kind for kind, _ in found(tree)] == ["subscription_unreadable"]
        assert not audit(tree).partitions[0].is_computed
    many = {f"/brokers/topics/t{number}": topic(1) for number in range(201)}
    endless = '{"version":1,"subscription":{".*":10000},"pattern":"white_list"}'
    assert MOST_ASSIGNED_STREAMS < 201 * 10_000
    assert found({**many, f"{G}/ids/c": endless}) == [
        ("assignment_unknown", "more than 2000000 streams and topics")
    ]


def test_an_owner_whose_data_names_no_consumer() -> None:
    # F449
    assert [kind for kind, _ in found({**SOUND, f"{G}/owners/t/0": "?"})] == ["owner_unreadable"]


def test_partitions_of_brokers_in_kafka_0_7() -> None:
    # F439, F445, F448, F459: two brokers with two partitions each, in the order of the names
    tree = {
        "/brokers/ids/0": "h:9092",
        "/brokers/ids/1": "i:9092",
        "/brokers/topics/t": None,
        "/brokers/topics/t/0": "2",
        "/brokers/topics/t/1": "2",
        f"{G}/ids/a": '{ "t": 1 }',
        f"{G}/ids/b": "*1*t",
        f"{G}/owners/t/0-0": "a-0",
        f"{G}/owners/t/0-1": "a-0",
        f"{G}/owners/t/1-0": "b-0",
        f"{G}/offsets/t/1-1": "4096",
        f"{G}/offsets/t/2-0": "0",
    }
    assert found(tree) == [
        ("partition_without_owner", "no consumer has claimed what b-0 is assigned"),
        ("offset_for_missing_partition", "t has no 2-0"),
    ]
    partitions = audit(tree).partitions
    assert [(part.place.partition.name, part.assigned) for part in partitions] == [
        ("0-0", "a-0"),
        ("0-1", "a-0"),
        ("1-0", "b-0"),
        ("1-1", "b-0"),
        ("2-0", None),
    ]
    assert {part.strategy for part in partitions} == {"range"}


def directory(name: str, topic_name: str, mark: str | None = None) -> DiskPartition:
    return DiskPartition(name, topic_name, 0, mark)


def disk(*partitions: DiskPartition, broker_id: int = 0, path: str = "/d") -> Disk:
    return Disk(path, "cluster", broker_id, partitions)


CLUSTER = {"/cluster/id": '{"version":"1","id":"cluster"}', "/brokers/topics/Topic": topic(1)}


def on_disks(tree: Tree, *disks: Disk) -> list[tuple[str, str]]:
    return [(f.finding, f.detail) for f in disk_findings(cluster_of(tree), disks)]


def test_a_topic_that_is_to_be_deleted() -> None:
    # F466
    tree = {**CLUSTER, "/admin/delete_topics/Topic": None}
    assert on_disks(tree, disk(directory("Topic-0", "Topic"))) == [
        ("topic_being_deleted", "to be deleted, still in /brokers/topics and the log directories")
    ]
    gone = {"/cluster/id": CLUSTER["/cluster/id"], "/admin/delete_topics/Topic": None}
    assert on_disks(gone) == [("topic_being_deleted", "to be deleted, still in neither place")]


def test_directories_of_unknown_topics() -> None:
    # F466
    assert on_disks(CLUSTER, disk(directory("Topic-0", "Topic"), directory("old-0", "old"))) == [
        ("topic_not_registered", "in the log directories alone")
    ]
    left = "Topic-0.0123456789abcdef0123456789abcdef-delete"
    assert on_disks(CLUSTER, disk(directory(left, "Topic", "delete"))) == [
        ("directory_being_deleted", f"/d/{left} is left of a deletion")
    ]


def test_what_else_a_wildcard_removes() -> None:
    # F466: rm -rf Topic-* of the documents
    found_there = disk(
        directory("Topic-0", "Topic"), directory("Topic-x-0", "Topic-x"), directory("Top-0", "Top")
    )
    assert wildcard_hits("Topic", [found_there]) == ["Topic-x-0"]
    tree = {
        **CLUSTER,
        "/brokers/topics/Topic-x": topic(1),
        "/brokers/topics/Top": topic(1),
        "/admin/delete_topics/Topic": None,
    }
    assert on_disks(tree, found_there)[1:] == [
        ("wildcard_hits_others", "Topic-* also names Topic-x-0")
    ]


def test_a_broker_id_that_two_have() -> None:
    # F438: two directories of one broker share no partition
    same, other = directory("Topic-0", "Topic"), directory("Topic-1", "Topic")
    assert on_disks(CLUSTER, disk(same), disk(other, path="/e")) == []
    assert on_disks(CLUSTER, disk(same), disk(same, path="/e")) == [
        ("broker_id_in_use_twice", "/d and /e both have Topic-0")
    ]
    assert on_disks(CLUSTER, disk(same), disk(same, path="/e", broker_id=1)) == []


def test_log_directories_of_another_cluster() -> None:
    # F469
    other = Disk("/d", "another", 0, (directory("x-0", "x"),))
    assert on_disks(CLUSTER, other) == [
        ("cluster_ids_differ", "/d is of cluster another, not of cluster")
    ]
    assert on_disks({}, other) == [
        ("cluster_ids_differ", "/d is of cluster another, and there is no /cluster/id")
    ]
    assert on_disks({}, other._replace(cluster_id=None)) == [
        ("topic_not_registered", "in the log directories alone")
    ]
