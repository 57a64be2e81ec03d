"""What comes after `kafkalog quorum rebuild`, as docs/tutorials/controllers-lost.md has it: brokers
of 4.4.0 that were killed lead and take writes again, and without a copy groups of all kinds and
transactions go on. Rules: F923 and F924."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, ShareConsumer

from kafkalog.command_line.main import kafkalog
from kafkalog.coordination.metadata.releases import features_of, made_releases
from tests.support.broker.cluster.kraft_cluster import KraftCluster
from tests.support.broker.java_tools import QUICK_START, run_tool

TOPIC = "orders"
INTERNAL = ("__consumer_offsets", "__transaction_state")
SETTINGS = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.min.isr": 2,
    "min.insync.replicas": 2,
}
_WAIT_SECONDS = 90


@pytest.fixture
def cluster(tmp_path: Path) -> KraftCluster:
    return KraftCluster(
        tmp_path / "cluster", is_dynamic=False, controllers=1, brokers=3, settings=SETTINGS
    )


def wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def create(cluster: KraftCluster) -> None:
    arguments = ("--partitions", "3", "--replication-factor", "3")
    cluster.run("TopicCommand", "--create", "--topic", TOPIC, *arguments)


def produce(cluster: KraftCluster, value: str) -> str | None:
    """Produce a record to each partition with acks=all; what went wrong, None if nothing did."""
    errors = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "message.timeout.ms": 30000})
    for partition in range(3):
        producer.produce(
            TOPIC, value, partition=partition, on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(60) == 0
    return next((str(error) for error in errors if error), None)


def transact(cluster: KraftCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "writer"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(TOPIC, "in a transaction", partition=0)
    producer.commit_transaction(60)


def consume(cluster: KraftCluster, group: str, protocol: str, count: int) -> None:
    """Have a group read some records and commit them."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group}
    consumer = Consumer({**settings, "group.protocol": protocol, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    found = 0

    def has_all() -> bool:
        nonlocal found
        record = consumer.poll(1)
        found += record is not None and record.error() is None
        return found >= count

    wait(has_all)
    consumer.commit(asynchronous=False)
    consumer.close()


def share(cluster: KraftCluster) -> None:
    """Have a share group get a record that is written once it has joined."""
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap, "group.id": "sharers"})
    consumer.subscribe([TOPIC])

    def has_record() -> bool:
        assert produce(cluster, "for sharers") is None
        return any(record.error() is None for record in consumer.poll(2) or ())

    wait(has_record)
    consumer.close()


def leaders(cluster: KraftCluster) -> list[str]:
    """Return the leaders of all partitions, as kafka-topics prints them."""
    text = cluster.run("TopicCommand", "--describe").text
    lines = [line for line in text.splitlines() if "Partition: " in line]
    return [line.split("Leader: ")[1].split()[0] for line in lines]


def rebuild(cluster: KraftCluster, new: Path, *arguments: str) -> str:
    """Write a new metadata directory for the controller, and give it to it."""
    node = cluster.nodes[1]
    given = [*arguments, "--voter", f"1@{node.address}", "--to", str(new)]
    result = CliRunner().invoke(kafkalog, ["quorum", "rebuild", *given])
    assert result.exit_code == 0, result.output
    node.metadata_dir = new
    return result.output


@pytest.mark.deep
def test_killed_brokers_lead_again_after_an_unclean_election(
    cluster: KraftCluster, tmp_path: Path
) -> None:
    # F924
    try:
        cluster.start()
        create(cluster)
        assert produce(cluster, "before") is None
        consume(cluster, "readers", "classic", 3)
        transact(cluster)
        cluster.stop(kill=True)
        cluster.lose(1)
        copies = [str(cluster.nodes[each].metadata_dir) for each in (11, 12, 13)]
        said = rebuild(cluster, tmp_path / "new", *copies)
        assert "partitions can stay without a leader until all of their brokers are back" in said
        cluster.start(1)
        cluster.start(11)
        assert {*leaders(cluster)} == {"none"}
        election = ("--election-type", "unclean", "--all-topic-partitions")
        cluster.run("LeaderElectionCommand", *election)
        wait(lambda: {*leaders(cluster)} == {"11"})
        # One replica of the two that must be in sync.
        assert produce(cluster, "refused") is not None
        for topic in (TOPIC, *INTERNAL):
            entity = ("--entity-type", "topics", "--entity-name", topic)
            config = ("--add-config", "min.insync.replicas=1")
            cluster.run("ConfigCommand", "--alter", *entity, *config)
        assert produce(cluster, "after") is None
        transact(cluster)
        consume(cluster, "readers", "classic", 3)
    finally:
        cluster.stop(kill=True)
    assert not [*tmp_path.rglob("*-stray")]


@pytest.mark.deep
def test_groups_of_all_kinds_and_transactions_go_on_without_a_copy(
    cluster: KraftCluster, tmp_path: Path
) -> None:
    # F923, F924
    def use() -> None:
        assert produce(cluster, "a value") is None
        consume(cluster, "readers", "consumer", 1)
        share(cluster)
        transact(cluster)

    try:
        cluster.start()
        create(cluster)
        use()
        cluster.stop(kill=True)
        for node in cluster.nodes.values():
            shutil.rmtree(node.metadata_dir)
        data = [str(cluster.nodes[each].data_dir) for each in (11, 12, 13)]
        rebuild(cluster, tmp_path / "new", "--from-data", *data)
        for broker in (11, 12, 13):
            cluster.format(cluster.nodes[broker], "--ignore-formatted")
        cluster.start(1)
        cluster.start(11, 12, 13)
        wait(lambda: "none" not in leaders(cluster))
        use()
    finally:
        cluster.stop(kill=True)
    assert not [*tmp_path.rglob("*-stray")]


@pytest.mark.deep
def test_releases_have_the_features_that_kafka_storage_prints() -> None:
    # F923
    for release in made_releases():
        name = "3.3-IV3" if release == "3.3" else release
        arguments = ["version-mapping", "--release-version", name]
        done = run_tool(
            "kafka.tools.StorageTool", arguments, jars="broker", java_options=QUICK_START
        )
        lines = (line.split("=") for line in done.text.splitlines() if "=" in line)
        levels = {name: int(level.split()[0]) for name, level in lines}
        del levels["kraft.version"]
        assert {name: level for name, level in levels.items() if level} == features_of(release)
