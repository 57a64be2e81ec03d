"""A cluster whose controllers are lost starts again from what `kafkalog quorum rebuild` writes: the
same answers to the Admin client, all records, and groups where they were. Rules: F770, and F810 to
F814 where no copy of the metadata is left."""

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.inspection.metadata.copies import MetadataCopy
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.broker.cluster.kraft_cluster import (
    KraftCluster,
    Node,
    kraft_cluster,
    new_directory_id,
)

RECORDS = 200
DESCRIPTIONS = (
    ("TopicCommand", "--describe"),
    ("ConfigCommand", "--describe", "--entity-type", "topics"),
    ("ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-default"),
    ("ConfigCommand", "--describe", "--entity-type", "users"),
    ("AclCommand", "--list"),
    ("FeatureCommand", "describe"),
    ("consumer.group.ConsumerGroupCommand", "--describe", "--group", "readers"),
)

# What the tools say of each kind of change.
SAID = (
    *("Topic: orders", "retention.ms=86400000", "message.max.bytes=1500000", "SCRAM-SHA-256"),
    *("producer_byte_rate", "User:alice", "metadata.version", "readers"),
)


def change_all_kinds(cluster: KraftCluster) -> None:
    """Make topics, records, commits, configs, a user, a quota and ACLs."""
    for name, partitions in (("orders", 3), ("gone", 1)):
        arguments = ("--partitions", str(partitions), "--replication-factor", "2")
        cluster.run("TopicCommand", "--create", "--topic", name, *arguments)
    cluster.run("TopicCommand", "--delete", "--topic", "gone")
    for entity, config in (
        (("topics", "orders"), "retention.ms=86400000,max.message.bytes=2000000"),
        (("users", "alice"), "SCRAM-SHA-256=[password=secret]"),
        (("users", "alice"), "producer_byte_rate=1048576"),
    ):
        kind, name = entity
        where = ("--entity-type", kind, "--entity-name", name)
        cluster.run("ConfigCommand", "--alter", *where, "--add-config", config)
    default = ("--entity-type", "brokers", "--entity-default")
    cluster.run("ConfigCommand", "--alter", *default, "--add-config", "message.max.bytes=1500000")
    acl = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
    cluster.run("AclCommand", "--add", *acl)
    lines = b"".join(b"record-%d\n" % number for number in range(RECORDS))
    cluster.run("ConsoleProducer", "--topic", "orders", stdin=lines)
    assert len(consumed(cluster, "--group", "readers")) == RECORDS


def consumed(cluster: KraftCluster, *options: str, count: int = RECORDS) -> list[bytes]:
    limits = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000")
    done = cluster.run("consumer.ConsoleConsumer", "--topic", "orders", *options, *limits)
    return sorted(done.stdout.splitlines())


def described(cluster: KraftCluster) -> list[list[str]]:
    """What the tools say, without what a restart changes: leaders, replicas in sync, epochs."""
    passing = re.compile(r"\b(Leader|Isr|Elr|LastKnownElr|Epoch): *\S*|\d{13,}")
    return [
        sorted(passing.sub("", line) for line in cluster.run(*asked).text.splitlines())
        for asked in DESCRIPTIONS
    ]


def rows(*arguments: object) -> list[dict[str, Any]]:
    given = ["metadata", *map(str, arguments), "--format", "json"]
    result = CliRunner().invoke(kafkalog, given)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.deep
@pytest.mark.parametrize("lost", [(2, 3), (1, 2, 3)], ids=["two-of-three", "all-three"])
@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
def test_a_lost_quorum_is_rebuilt(is_dynamic: bool, lost: tuple[int, ...], tmp_path: Path) -> None:
    with kraft_cluster(tmp_path / "cluster", is_dynamic=is_dynamic) as cluster:
        change_all_kinds(cluster)
        before = described(cluster)
        said = "\n".join(line for lines in before for line in lines)
        assert [word for word in SAID if word not in said] == []
        cluster.stop(*(node for node in cluster.nodes if node < 10), kill=True)
        cluster.stop()
        cluster.lose(*lost)

        left = [each.metadata_dir for node, each in cluster.nodes.items() if node not in lost]
        node, new = cluster.nodes[1], tmp_path / "new"
        voter = f"1@{node.address}"
        arguments = [*map(str, left), "--voter", voter, "--to", str(new)]
        result = CliRunner().invoke(kafkalog, ["quorum", "rebuild", *arguments])
        assert result.exit_code == 0, result.output
        topics = rows(*left, "--by", "partition")

        node.metadata_dir = new
        cluster.elect([1])
        for absent in (2, 3):
            del cluster.nodes[absent]
        cluster.start(1)
        cluster.start(11, 12)
        assert described(cluster) == before
        assert len(set(consumed(cluster))) == RECORDS
        cluster.stop()
        assert not [*tmp_path.rglob("*-stray")]
        names = ("topic", "partition", "replicas", "topic_id", "directories")
        found = rows(new, "--by", "partition")
        assert [[row[name] for name in names] for row in found] == [
            [row[name] for name in names] for row in topics
        ]


# So that brokers take snapshots of what `change_all_kinds` does.
MANY_SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": 1500}


def damage(copy: Path) -> Path:
    """Change a byte of the newest snapshot of a node, and tear a batch at the end of its log, as a
    node does that dies while it writes. Return the snapshot."""
    directory = copy / "__cluster_metadata-0"
    snapshot = max(directory.glob("*.checkpoint"))
    assert not snapshot.name.startswith("0" * 20)
    data = bytearray(snapshot.read_bytes())
    data[len(data) // 2] ^= 1
    snapshot.write_bytes(data)
    last = max(directory.glob("*.log"))
    batch = last.read_bytes()[:40]
    end = MetadataCopy(*find_partitions([str(copy)])).position[1]
    with last.open("ab") as log:
        log.write(end.to_bytes(8, "big") + batch[8:])
    return snapshot


@pytest.mark.deep
@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
def test_a_controller_gets_damaged_copies_another_address_and_another_directory(
    is_dynamic: bool, tmp_path: Path
) -> None:
    # F765, F770
    with kraft_cluster(
        tmp_path / "cluster", is_dynamic=is_dynamic, settings=MANY_SNAPSHOTS
    ) as cluster:
        change_all_kinds(cluster)
        before = described(cluster)
        cluster.stop(1, 2, 3, kill=True)
        cluster.stop()
        cluster.lose(1, 2, 3)
        copies = [cluster.nodes[broker].metadata_dir for broker in (11, 12)]
        damaged = [damage(copy) for copy in copies]

        node, new, directory_id = cluster.nodes[1], tmp_path / "new", new_directory_id()
        node.move()
        voter = f"1@{node.address}:{directory_id}"
        arguments = [*map(str, copies), "--voter", voter, "--to", str(new)]
        result = CliRunner().invoke(kafkalog, ["quorum", "rebuild", *arguments])
        assert result.exit_code == 0, result.output
        assert node.address.startswith("localhost:")
        assert sum(f"left out: {path}: " in result.output for path in damaged) == 1

        node.metadata_dir = new
        for absent in (2, 3):
            del cluster.nodes[absent]
        cluster.elect([1])
        cluster.start(1)
        # By itself Kafka does not start with a corrupt snapshot.
        with pytest.raises(RuntimeError, match="CorruptRecordException"):
            cluster.start(11)
        for broker, copy in zip((11, 12), copies, strict=True):
            log = copy / "__cluster_metadata-0"
            assert (
                f"node {broker} may not start with its damaged copy: move {log} " in result.output
            )
            shutil.rmtree(log)
        cluster.start(11, 12)
        assert described(cluster) == before
        assert len(set(consumed(cluster))) == RECORDS
        quorum = cluster.run("MetadataQuorumCommand", "describe", "--replication").text
        (leader,) = (line.split() for line in quorum.splitlines() if "Leader" in line.split())
        assert leader[:2] == ["1", directory_id if is_dynamic else "A" * 22]
        cluster.stop()
        assert not [*tmp_path.rglob("*-stray")]


CANDIDATE = "Completed transition to ProspectiveState"


def elections_of(node: Node) -> str:
    """Return what a controller logs until it has begun three elections."""
    deadline = time.monotonic() + 120
    while node.log.count(CANDIDATE) < 3:
        assert time.monotonic() < deadline, node.log[-3000:]
        time.sleep(0.2)
    return node.log


@pytest.mark.deep
def test_kafka_elects_no_controller_by_itself(tmp_path: Path) -> None:
    # F769: neither where all voters have other addresses, nor without a majority.
    with kraft_cluster(tmp_path / "cluster", is_dynamic=True) as cluster:
        cluster.stop()
        for node_id in (1, 2, 3):
            cluster.nodes[node_id].move()
        cluster.elect([1, 2, 3])
        for node in cluster.launch(1, 2, 3):
            assert "transition to Leader" not in elections_of(node)
        cluster.stop()
        cluster.lose(2, 3)
        (node,) = cluster.launch(1)
        assert "transition to Leader" not in elections_of(node)


GROUP = ("consumer.group.ConsumerGroupCommand", "--describe", "--group", "readers")


def group_position(cluster: KraftCluster) -> list[list[str]]:
    """Topic, partition and committed offset of the group."""
    lines = [line.split() for line in cluster.run(*GROUP).text.splitlines()]
    return sorted(line[1:4] for line in lines if line[:2] == ["readers", "orders"])


def destroy_all_metadata(cluster: KraftCluster) -> None:
    """End all nodes, and remove all copies of the metadata."""
    cluster.stop(*(node for node in cluster.nodes if node < 10), kill=True)
    cluster.stop()
    for node in cluster.nodes.values():
        shutil.rmtree(node.metadata_dir)


def start_alone(cluster: KraftCluster) -> None:
    """Start controller 1, and then the brokers with new metadata directories."""
    for absent in (2, 3):
        cluster.nodes.pop(absent, None)
    cluster.elect([1])
    cluster.start(1)
    for broker in (11, 12):
        unknown = ["--no-initial-controllers"] if cluster.is_dynamic else []
        cluster.format(cluster.nodes[broker], "--ignore-formatted", *unknown)
    cluster.start(11, 12)


@pytest.mark.deep
@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
def test_a_cluster_without_any_copy_is_rebuilt_from_its_data(
    is_dynamic: bool, tmp_path: Path
) -> None:
    # F810 to F814
    with kraft_cluster(tmp_path / "cluster", is_dynamic=is_dynamic) as cluster:
        change_all_kinds(cluster)
        position = group_position(cluster)
        cluster.stop(11, 12)
        before = rows(cluster.nodes[1].metadata_dir, "--by", "partition")
        destroy_all_metadata(cluster)
        data = [cluster.nodes[broker].data_dir for broker in (11, 12)]
        feature = ("--feature", "kraft.version=1") if is_dynamic else ()
        new, voter = tmp_path / "new", ("--voter", f"1@{cluster.nodes[1].address}")
        arguments = ["--from-data", *map(str, data), *voter, *feature, "--to", str(new)]
        result = CliRunner().invoke(kafkalog, ["quorum", "rebuild", *arguments])
        assert result.exit_code == 0, result.output

        cluster.nodes[1].metadata_dir = new
        start_alone(cluster)
        assert group_position(cluster) == position
        assert len(set(consumed(cluster))) == RECORDS
        # Where the committed offsets of the group are, nothing is left for it.
        cluster.run("ConsoleProducer", "--topic", "orders", stdin=b"one more\n")
        assert set(consumed(cluster, "--group", "readers", count=1)) == {b"one more"}
        cluster.run("FeatureCommand", "upgrade", "--release-version", "4.3")
        assert "4.3-IV0" in cluster.run("FeatureCommand", "describe").text
        cluster.stop()
        assert not [*tmp_path.rglob("*-stray")]
        after = rows(new, "--by", "partition")
        names = ("topic", "partition", "topic_id")
        assert [[row[name] for name in names] for row in after] == [
            [row[name] for name in names] for row in before
        ]
        for one, other in zip(after, before, strict=True):
            assert set(one["replicas"]) == set(other["replicas"])
            assert one["leader_epoch"] >= other["leader_epoch"]


@pytest.mark.deep
def test_brokers_set_their_partitions_aside_for_a_controller_without_a_copy(tmp_path: Path) -> None:
    # F810: what Kafka does by itself.
    with kraft_cluster(tmp_path / "cluster", is_dynamic=False, controllers=1) as cluster:
        change_all_kinds(cluster)
        destroy_all_metadata(cluster)
        cluster.elect([1])
        cluster.format(cluster.nodes[1])
        start_alone(cluster)
        assert "orders" not in cluster.run("TopicCommand", "--list").text
        cluster.stop()
        names = [path.name.split(".")[0] for path in cluster.nodes[11].data_dir.glob("*-stray")]
        assert {"orders-0", "orders-1", "orders-2", "__consumer_offsets-0"} <= set(names)
