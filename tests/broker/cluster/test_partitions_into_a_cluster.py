"""Partitions that `kafkalog restore --into` has made, in a real cluster that had the topics: F1311
to F1314 of docs/restore.md."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from kafkalog.exit_codes import ExitCode
from kafkalog.format.batch_header import read_header
from kafkalog.format.side_files.leader_epochs import read_leader_epochs
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import LEADER_EPOCHS
from kafkalog.storage.reading.log_reader import LogReader
from tests.support.broker.cluster.kraft_cluster import KraftCluster
from tests.support.broker.cluster.restored_cluster import MARGIN_MS, WAIT_SECONDS, ledger, restore
from tests.support.broker.kafka_server import KafkaServer
from tests.support.golden.restored_copies import AS_OF, AS_OF_MS

pytestmark = pytest.mark.deep

Unpacked = Callable[[str], Path]
BROKERS = (11, 12, 13)
TOPICS = {"transfers": 3, "events": 4, "plain": 1}
# Below the log start of plain-0, when the disks were copied.
DELETED_TO = 60


@pytest.fixture
def server(tmp_path: Path) -> KafkaServer:
    """A cluster that has the topics, and is stopped."""
    # Producers that wrote days ago are known.
    settings = {"producer.id.expiration.ms": 2**31 - 1}
    home = tmp_path / "server"
    with KafkaServer(home, home / "data", settings=settings) as found:
        for topic, partitions in TOPICS.items():
            found.create_topic(topic, partitions)
    return found


def disks(unpacked: Unpacked) -> list[str]:
    return sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))


def restored(unpacked: Unpacked, metadata: Path, target: Path) -> str:
    topics = [word for topic in TOPICS for word in ("--topic", topic)]
    given = [*disks(unpacked), "--as-of", AS_OF, "--into", str(metadata)]
    command = [sys.executable, "-m", "kafkalog", "restore", *given, *topics, "--to", str(target)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == ExitCode.FINDINGS, result.stderr
    return result.stdout


def put(target: Path, server: KafkaServer) -> None:
    """Do what the command says, with the topics' directories and the line for the checkpoint."""
    for directory in (target / "node-1" / "data").iterdir():
        shutil.rmtree(server.log_dir / directory.name)
        shutil.copytree(directory, server.log_dir / directory.name)
    checkpoint = server.log_dir / "log-start-offset-checkpoint"
    checkpoint.write_text(f"0\n1\nplain 0 {DELETED_TO}\n")


def produced(bootstrap: str, number: int) -> list[str]:
    """Errors of a new idempotent producer that writes a record into each partition."""
    errors: list[str] = []
    settings = {"bootstrap.servers": bootstrap, "message.timeout.ms": 1000 * WAIT_SECONDS // 2}
    producer = Producer({**settings, "enable.idempotence": True})
    for topic, partitions in TOPICS.items():
        for partition in range(partitions):
            producer.produce(
                topic,
                f"new {number}",
                partition=partition,
                on_delivery=lambda error, _: errors.append(str(error)) if error else None,
            )
    assert producer.flush(WAIT_SECONDS) == 0
    return errors


def epochs_of_batches(directory: Path) -> Iterator[int]:
    for log in find_partitions([str(directory)]):
        reader = LogReader(log)
        for chunk in reader.chunks(reader.start_offset, 2**20):
            yield from (read_header(each, 0).leader_epoch for each in chunk.batches())


def test_epochs_that_the_cluster_has_not_had_would_go(
    server: KafkaServer, unpacked: Unpacked, tmp_path: Path
) -> None:
    """Without F1312 the broker removes the epochs from the checkpoint, and batches keep them."""
    target = tmp_path / "new"
    restored(unpacked, server.work_dir / "metadata", target)
    partition = target / "node-1" / "data" / "plain-0"
    (partition / LEADER_EPOCHS).write_text("0\n2\n0 60\n9 133\n")
    put(target, server)
    server.start()
    try:
        assert produced(server.bootstrap, 0) == []
        kept = read_leader_epochs((server.log_dir / "plain-0" / LEADER_EPOCHS).read_text())
        assert 9 not in [each.epoch for each in kept]
    finally:
        server.stop()


def test_a_cluster_goes_on_with_the_partitions(
    server: KafkaServer, unpacked: Unpacked, tmp_path: Path
) -> None:
    """F1311 to F1314: all records are served, and new producers, whose ids the logs have, write."""
    said = restored(unpacked, server.work_dir / "metadata", tmp_path / "new")
    assert f"gets the line plain 0 {DELETED_TO}" in said
    put(tmp_path / "new", server)
    rows = json.loads((tmp_path / "new" / "manifest.json").read_text())["partitions"]
    highest = max(row["leader_epoch"] for row in rows)
    assert max(epochs_of_batches(Path(rows[0]["copy"]).parent)) > highest
    assert max(epochs_of_batches(tmp_path / "new" / "node-1" / "data")) <= highest
    server.start()
    try:
        for topic in TOPICS:
            found = {(each.partition, each.offset): each for each in server.consume_all(topic)}
            assert min(offset for _, offset in found) == (DELETED_TO if topic == "plain" else 0)
            # The old cluster has lost a record of plain, which was written with acks=1.
            for row in ledger(unpacked("restore44.golden"), topic) if topic != "plain" else ():
                if row["ack"] * 1000 > AS_OF_MS - MARGIN_MS:
                    continue
                value = found[row["partition"], row["offset"]].value
                assert value is not None
                assert value.decode() == row["value"]
        for number in range(12):
            assert produced(server.bootstrap, number) == []
        for topic, partitions in TOPICS.items():
            values = [each.value for each in server.consume_all(topic)]
            new = [value for value in values if value is not None and value.startswith(b"new ")]
            assert len(new) == 12 * partitions
        said = server.log_text()
        assert "-stray" not in said
        assert "truncation of conflicting" not in said
        epochs = read_leader_epochs((server.log_dir / "events-0" / LEADER_EPOCHS).read_text())
        assert [each.epoch for each in epochs] == sorted({each.epoch for each in epochs})
    finally:
        server.stop()


def test_with_the_producers_of_the_old_cluster_new_ones_are_not_written(
    server: KafkaServer, unpacked: Unpacked, tmp_path: Path
) -> None:
    """Without F1313: a new producer that gets the id of an old one is taken for it. The snapshots
    are those of a restored cluster, which gives no such id."""
    restored(unpacked, server.work_dir / "metadata", tmp_path / "new")
    restore(disks(unpacked), tmp_path / "cluster")
    for snapshot in (tmp_path / "new").rglob("*.snapshot"):
        with_producers = tmp_path / "cluster" / "data" / snapshot.parent.name / snapshot.name
        shutil.copy(with_producers, snapshot)
    put(tmp_path / "new", server)
    server.start()
    try:
        with pytest.raises(KafkaException) as raised:
            for number in range(12):
                produced(server.bootstrap, number)
        assert raised.value.args[0].code() == KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
    finally:
        server.stop()


def values_of(bootstrap: str, topic: str) -> dict[tuple[int, int], str]:
    """The values that a consumer gets, by partition and offset."""
    settings = {"bootstrap.servers": bootstrap, "isolation.level": "read_uncommitted"}
    consumer = Consumer({**settings, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign(
        [TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(TOPICS[topic])]
    )
    left = set(range(TOPICS[topic]))
    found = {}
    deadline = time.monotonic() + WAIT_SECONDS
    while left:
        assert time.monotonic() < deadline, left
        for record in consumer.consume(1000, 1.0):
            error, place = record.error(), record.partition() or 0
            if error is None:
                found[place, record.offset() or 0] = (record.value() or b"").decode()
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(place)
    consumer.close()
    return found


def wait_until_in_sync(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        found = admin.list_topics(timeout=WAIT_SECONDS).topics
        replicas = [each for name in TOPICS for each in found[name].partitions.values()]
        if all(sorted(each.isrs) == sorted(each.replicas) == [11, 12, 13] for each in replicas):
            return
        assert time.monotonic() < deadline, replicas
        time.sleep(0.5)


def test_three_brokers_go_on_with_the_partitions(unpacked: Unpacked, tmp_path: Path) -> None:
    """F1311 to F1314: with three replicas each; and each broker has the records when it leads."""
    cluster = KraftCluster(tmp_path / "cluster", False, controllers=1, brokers=3)
    ledgers = unpacked("restore44.golden")
    try:
        cluster.start()
        for topic, partitions in TOPICS.items():
            numbers = ("--partitions", str(partitions), "--replication-factor", "3")
            kept = ("--config", "retention.ms=-1")
            cluster.run("TopicCommand", "--create", "--topic", topic, *numbers, *kept)
        wait_until_in_sync(cluster.bootstrap)
        cluster.stop()
        target = tmp_path / "new"
        said = restored(unpacked, cluster.nodes[1].metadata_dir, target)
        for broker in BROKERS:
            data = cluster.nodes[broker].data_dir
            place = target / f"node-{broker}" / "data"
            assert f"broker {broker}: directories in {place} replace those of the same name" in said
            for directory in place.iterdir():
                shutil.rmtree(data / directory.name)
                shutil.copytree(directory, data / directory.name)
            (data / "log-start-offset-checkpoint").write_text(f"0\n1\nplain 0 {DELETED_TO}\n")
        cluster.start()
        wait_until_in_sync(cluster.bootstrap)
        before = {topic: values_of(cluster.bootstrap, topic) for topic in TOPICS}
        for topic in ("transfers", "events"):
            for row in ledger(ledgers, topic):
                if row["ack"] * 1000 < AS_OF_MS - MARGIN_MS:
                    assert before[topic][row["partition"], row["offset"]] == row["value"]
        assert min(offset for _, offset in before["plain"]) == DELETED_TO
        for number in range(12):
            assert produced(cluster.bootstrap, number) == []
        for broker in BROKERS:
            said = cluster.nodes[broker].log
            assert "-stray" not in said
            assert "truncation of conflicting" not in said
        # The last broker leads alone: what it serves are its own files.
        cluster.stop(11)
        cluster.stop(12)
        for topic in TOPICS:
            after = values_of(cluster.nodes[13].address, topic)
            new = [value for value in after.values() if value.startswith("new ")]
            assert len(new) == 12 * TOPICS[topic]
            assert before[topic].items() <= after.items()
    finally:
        cluster.stop(kill=True)
