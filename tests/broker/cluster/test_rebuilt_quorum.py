"""A cluster whose controllers are lost starts again from what `kafkalog rebuild-quorum` writes: the
same answers to the Admin client, all records, and groups where they were. Rule: F770."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.cluster.kraft_cluster import KraftCluster, kraft_cluster

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


def consumed(cluster: KraftCluster, *options: str) -> list[bytes]:
    limits = ("--from-beginning", "--max-messages", str(RECORDS), "--timeout-ms", "30000")
    done = cluster.run("consumer.ConsoleConsumer", "--topic", "orders", *options, *limits)
    return sorted(done.stdout.splitlines())


def described(cluster: KraftCluster) -> list[list[str]]:
    """What the tools say, without what a restart changes: leaders, replicas in sync, epochs."""
    passing = re.compile(r"\b(Leader|Isr|Elr|LastKnownElr|Epoch): *\S*|\d{13,}")
    return [
        sorted(passing.sub("", line) for line in cluster.run(*asked).text.splitlines())
        for asked in DESCRIPTIONS
    ]


def rows(*arguments: object) -> list[dict[str, object]]:
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
        result = CliRunner().invoke(kafkalog, ["rebuild-quorum", *arguments])
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
