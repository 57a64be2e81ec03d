"""Brokers start on directories of brokers that stopped cleanly or were killed: `kafkalog recover`
names nothing in them, and the broker has all records afterwards. Rules: F960 to F973, F1198.
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kafkalog.command_line.main import kafkalog
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.old_broker import old_broker
from tests.support.broker.zookeeper_server import zookeeper_server

pytestmark = pytest.mark.deep
RECORDS = 40
_LEADER_SECONDS = 30
_SESSION_MS = 3000


def produce(address: str) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5})
    for number in range(RECORDS):
        producer.produce("orders", b"value", key=str(number))
    assert producer.flush(30) == 0


def end_offset(address: str, partition: int) -> int:
    """Return where a partition ends, once it has a leader."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "ends"})
    place = TopicPartition("orders", partition)
    deadline = time.monotonic() + _LEADER_SECONDS
    try:
        while True:
            try:
                return int(consumer.get_watermark_offsets(place, timeout=20)[1])
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
    finally:
        consumer.close()


def foretold_ends(log_dirs: Sequence[Path], settings: Path, version: str) -> dict[int, int]:
    """Return where partitions of the topic end after the start, of a node that loses nothing."""
    given = ["recover", *log_dirs, "--server-properties", settings, "--kafka", version]

    def said(*more: str) -> tuple[int, str]:
        arguments = map(str, (*given, *more, "--processes", "1"))
        result = CliRunner().invoke(kafkalog, list(arguments))
        return result.exit_code, result.stdout

    code, text = said()
    assert code == 0, text
    assert f" starts with Kafka {version}\n" in text
    assert text.endswith("nothing is lost\n")
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in said("--all", "--format", "json")[1].splitlines()
    ]
    return {row["partition"]: row["log_end_offset"] for row in rows if row["topic"] == "orders"}


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("version", ["4.4.0", "4.0.1", "3.9.2", "3.5.2", "3.3.2"])
def test_a_node_without_zookeeper_starts_as_foretold(
    version: str, is_killed: bool, tmp_path: Path
) -> None:
    other = None if version == "4.4.0" else version
    server = KafkaServer(tmp_path / "home", kafka_version=other)
    with server:
        server.create_topic("orders", partitions=2)
        produce(server.bootstrap)
        if is_killed:
            os.kill(server.pid, signal.SIGKILL)
    log_dirs = (server.log_dir, server.work_dir / "metadata")
    ends = foretold_ends(log_dirs, server.work_dir / "server.properties", version)
    assert sum(ends.values()) == RECORDS
    with server:
        assert {each: end_offset(server.bootstrap, each) for each in ends} == ends


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize(("version", "jars"), [("3.9.2", "kafka39"), ("0.10.2.2", "kafka010")])
def test_a_broker_with_zookeeper_starts_as_foretold(
    version: str, jars: str, is_killed: bool, tmp_path: Path
) -> None:
    log_dir = tmp_path / "data"
    settings = {"zookeeper.session.timeout.ms": _SESSION_MS, "num.partitions": 2}
    with zookeeper_server(tmp_path / "zookeeper", {}) as zookeeper:
        with old_broker(tmp_path / "1", log_dir, zookeeper.port, settings, jars=jars) as broker:
            produce(broker.address)
            if is_killed:
                broker.kill()
                # Until its session has ended, ZooKeeper has the broker registered.
                time.sleep(2 * _SESSION_MS / 1000)
        ends = foretold_ends([log_dir], tmp_path / "1" / "server.properties", version)
        assert sum(ends.values()) == RECORDS
        with old_broker(tmp_path / "2", log_dir, zookeeper.port, settings, jars=jars) as broker:
            assert {each: end_offset(broker.address, each) for each in ends} == ends
