"""What `kafkalog recover` says of the directories of a broker with ZooKeeper is what a broker of
3.9.2 makes of them. Rules: docs/format.md F960 to F973, F1399 and F1405."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.broker.class_paths import class_path
from tests.support.broker.node_starts.foretold_start import foretold_start, outcome
from tests.support.broker.node_starts.started_node import started_node
from tests.support.broker.node_starts.zookeeper_damages import ZOOKEEPER_DAMAGES
from tests.support.broker.old_broker import old_broker
from tests.support.broker.zookeeper_server import zookeeper_server

pytestmark = pytest.mark.deep
_SESSION_MS = 3000
_SETTINGS = {
    "broker.id": 0,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "log.segment.bytes": 300,
    "log.retention.check.interval.ms": 1000,
    "log.initial.task.delay.ms": 500,
    "log.index.size.max.bytes": 4096,
    "log.cleaner.dedupe.buffer.size": 2_097_152,
    "zookeeper.session.timeout.ms": _SESSION_MS,
    "auto.create.topics.enable": "false",
}


class StoppedBroker(NamedTuple):
    """The port and the data directory of a ZooKeeper, and a folder with d1, d2 and
    server.properties of a broker."""

    port: int
    data_dir: Path
    folder: Path


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoppedBroker]:
    home = tmp_path_factory.mktemp("zookeeper")
    folder = home / "node"
    folder.mkdir()
    with zookeeper_server(home / "zookeeper", {}) as zookeeper:
        settings = {**_SETTINGS, "log.dirs": f"{folder}/d1,{folder}/d2"}
        with old_broker(
            home / "broker", folder, zookeeper.port, settings, jars="kafka39"
        ) as broker:
            _fill(broker.address)
        lines = {
            **_SETTINGS,
            "log.dirs": "d1,d2",
            "listeners": "PLAINTEXT://localhost:29492",
            "zookeeper.connect": "localhost:29493",
        }
        (folder / "server.properties").write_text(
            "".join(f"{name}={value}\n" for name, value in lines.items())
        )
        yield StoppedBroker(zookeeper.port, home / "zookeeper/data", folder)


def _fill(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic("orders", 2, 1), NewTopic("pay", 1, 1)]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": address})
    for number in range(16):
        for partition in (0, 1):
            producer.produce("orders", b"value", key=str(number), partition=partition)
        assert producer.flush(30) == 0
    producer.produce("pay", b"value")
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 8)], asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("damage", ZOOKEEPER_DAMAGES)
def test_a_broker_with_zookeeper_does_what_the_plan_says(
    damage: str, stopped: StoppedBroker, tmp_path: Path
) -> None:
    folder = tmp_path / "node"
    shutil.copytree(stopped.folder, folder)
    ZOOKEEPER_DAMAGES[damage](folder)
    said = foretold_start(folder, "3.9.2", "--zookeeper", stopped.data_dir)
    found = started_node(folder, kafka=class_path("kafka39"), zookeeper_port=stopped.port)
    if not found.started:
        # ZooKeeper has it registered until its session ends.
        time.sleep(2 * _SESSION_MS / 1000)
    # A directory of a topic that ZooKeeper does not have has no leader, and clients hear of none.
    if found.started:
        said["leaderless"] -= {"ghost-0"}
    assert said == outcome(found), found.log[-2000:]
