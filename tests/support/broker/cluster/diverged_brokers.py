"""Three real brokers whose logs have diverged: each led alone, after an unclean election, and has
records, transactions and commits that the others lack."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.broker.cluster.foretold_elections import TOPIC
from tests.support.broker.cluster.kraft_cluster import KraftCluster

BROKERS = (11, 12, 13)

PARTITIONS = 2
SETTINGS = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.num.partitions": 1,
    "min.insync.replicas": 1,
    "unclean.leader.election.enable": "true",
    "num.replica.fetchers": 1,
    "replica.lag.time.max.ms": 10000,
}
# Who leads alone, one after another, and how many records each writes to a partition.
TERMS = ((11, 7), (12, 5), (13, 9), (11, 4))


@contextmanager
def diverged_brokers(home: Path) -> Iterator[KraftCluster]:
    """A controller and three brokers that have diverged and do not run; none does at the end."""
    cluster = KraftCluster(home, False, controllers=1, brokers=3, settings=SETTINGS)
    try:
        _diverge(cluster)
        # From now on nothing but the tool makes an unclean election.
        cluster.settings = {**SETTINGS, "unclean.leader.election.enable": "false"}
        yield cluster
    finally:
        cluster.stop(kill=True)


def _diverge(cluster: KraftCluster) -> None:
    cluster.start()
    arguments = ("--partitions", str(PARTITIONS), "--replication-factor", "3")
    cluster.run("TopicCommand", "--create", "--topic", TOPIC, *arguments)
    _write(cluster, "all", 20)
    _commit(cluster, "readers", 10)
    _commit(cluster, "others", 12)
    # Brokers make this topic with the setting off.
    topic = ("--entity-type", "topics", "--entity-name", "__transaction_state")
    unclean = ("--add-config", "unclean.leader.election.enable=true")
    cluster.run("ConfigCommand", "--alter", *topic, *unclean)
    cluster.stop(13)
    cluster.stop(12)
    cluster.stop(11)
    for number, (broker, records) in enumerate(TERMS):
        cluster.start(broker)
        _write(cluster, f"{broker}-{number}", records)
        _commit(cluster, "readers", 20 + (records if broker != 12 else -9))
        if broker == 13:
            _commit(cluster, "newcomers", 22)
        cluster.stop(broker)
    cluster.stop()


def _write(cluster: KraftCluster, name: str, records: int) -> None:
    """Write records by themselves, then a transaction that ends and one that is aborted, to each
    partition; a batch has one record."""
    settings = {"bootstrap.servers": cluster.bootstrap, "linger.ms": 0, "socket.timeout.ms": 10000}
    producer = Producer({**settings, "acks": 1})
    for number in range(records):
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, f"{name}-{partition}-{number}", partition=partition)
        assert producer.flush(60) == 0
    transactional = Producer({**settings, "transactional.id": f"id-{name}"})
    transactional.init_transactions(60)
    for ending in (transactional.commit_transaction, transactional.abort_transaction):
        transactional.begin_transaction()
        for partition in range(PARTITIONS):
            transactional.produce(
                TOPIC, f"{name}-{partition}-{ending.__name__}", partition=partition
            )
        assert transactional.flush(60) == 0
        ending(60)


def _commit(cluster: KraftCluster, group: str, offset: int) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group}
    consumer = Consumer({**settings, "enable.auto.commit": False, "session.timeout.ms": 10000})
    places = [TopicPartition(TOPIC, partition, offset) for partition in range(PARTITIONS)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def committed(cluster: KraftCluster, group: str) -> dict[int, int | None]:
    """What a group has committed for each partition, None for nothing."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    found = {each.partition: each.offset for each in consumer.committed(places, timeout=30)}
    consumer.close()
    return {partition: None if at < 0 else at for partition, at in found.items()}


def copied(cluster: KraftCluster, target: Path) -> list[Path]:
    """Copy what the nodes, which do not run, have on their disks; the copies of the directories."""
    copies = []
    for node in cluster.nodes.values():
        for directory in {node.data_dir, node.metadata_dir}:
            copies.append(target / node.home.name / directory.name)
            shutil.copytree(directory, copies[-1])
    return copies


def restore(cluster: KraftCluster, source: Path) -> None:
    """Put back what was copied."""
    cluster.lose(*cluster.nodes)
    for node in cluster.nodes.values():
        for directory in {node.data_dir, node.metadata_dir}:
            shutil.copytree(source / node.home.name / directory.name, directory)
