"""Brokers start on directories of brokers that stopped cleanly or were killed: `kafkalog recover`
names nothing in them, and each partition begins and ends afterwards where it said. Rules: F960 to
F973, F1198.
"""

import json
import os
import signal
import time
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkalog.command_line.main import kafkalog
from kafkalog.storage.names import CLUSTER_METADATA
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.node_starts.started_node import served_bounds
from tests.support.broker.old_broker import OldBroker, old_broker
from tests.support.broker.zookeeper_server import zookeeper_server

pytestmark = pytest.mark.deep
RECORDS = 40
_SESSION_MS = 3000
# Segments of some records, where a broker of 4.1 or later refuses the size under its usual name.
_SMALL_SEGMENTS = {"log.segment.bytes": 1 << 20, "internal.segment.bytes": 500}
_OLD_SEGMENTS = {"log.segment.bytes": 500}
# Kafka 3.0 does not take it for granted.
_PROTOCOLS = {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"}
_FIRST_WITH_TRANSACTIONS = (0, 11)
_OF_ONE = (
    *("offsets.topic.num.partitions", "offsets.topic.replication.factor"),
    *("transaction.state.log.num.partitions", "transaction.state.log.replication.factor"),
    "transaction.state.log.min.isr",
)
Bounds = dict[str, tuple[int, int]]


def fill(address: str, version: str) -> None:
    """Write records to topic orders, a compacted topic and, where there are any, by transactions;
    commit offsets of a group."""
    make_topics(AdminClient({"bootstrap.servers": address}))
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce("orders", b"value", key=str(number))
        producer.produce("users", b"value", key=str(number % 5))
        if not number % 8:
            assert producer.flush(30) == 0
    assert producer.flush(30) == 0
    if tuple(map(int, version.split(".")[:2])) >= _FIRST_WITH_TRANSACTIONS:
        transactional = Producer({"bootstrap.servers": address, "transactional.id": "orders"})
        transactional.init_transactions(30)
        for is_committed in (True, False):
            transactional.begin_transaction()
            transactional.produce("orders", b"value", partition=0)
            assert transactional.flush(30) == 0
            if is_committed:
                transactional.commit_transaction(30)
            else:
                transactional.abort_transaction(30)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("orders", 1, 3)], asynchronous=False)
    consumer.close()


def make_topics(admin: AdminClient) -> None:
    """Make the topics; a broker that has just started can be silent at first."""
    compacted = NewTopic("users", 1, 1, config={"cleanup.policy": "compact"})
    new = [NewTopic("orders", 2, 1), compacted]
    deadline = time.monotonic() + 90
    while not {each.topic for each in new} <= set(admin.list_topics(timeout=20).topics):
        assert time.monotonic() < deadline, "the broker makes no topics"
        for made in admin.create_topics(new, request_timeout=5).values():
            # One that exists by now is an error, too.
            with suppress(KafkaException, TimeoutError):
                made.result(10)


def found_bounds(address: str, names: Collection[str]) -> Bounds:
    """Return where all partitions begin and end, once those of the names have leaders."""
    admin = AdminClient({"bootstrap.servers": address})
    deadline = time.monotonic() + 30
    led: set[str] = set()
    while not led.issuperset(names) and time.monotonic() < deadline:
        time.sleep(0.5)
        led = {
            f"{name}-{number}"
            for name, topic in admin.list_topics(timeout=20).topics.items()
            for number, partition in topic.partitions.items()
            if partition.leader >= 0
        }
    return served_bounds(address, led)


def foretold_bounds(log_dirs: Sequence[Path], settings: Path, version: str) -> Bounds:
    """Return where partitions begin and end after the start, of a node that loses nothing."""
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
    assert not any(row["is_set_aside"] or row["has_leader"] is False for row in rows)
    return {
        f"{row['topic']}-{row['partition']}": (row["log_start_offset"], row["log_end_offset"])
        for row in rows
        if row["topic"] != CLUSTER_METADATA
    }


def assert_whole(log: str, log_dirs: Sequence[Path]) -> None:
    """Fail where a log directory went offline, or a partition was set aside."""
    assert "Stopping serving" not in log
    assert not [path for each in log_dirs for path in each.glob("*-stray")]


@pytest.mark.parametrize("is_killed", [False, True], ids=["clean", "killed"])
@pytest.mark.parametrize(
    "version", ["4.4.0", "4.3.1", "4.1.0", "4.0.1", "3.9.2", "3.5.2", "3.3.2", "3.0.2"]
)
def test_a_node_without_zookeeper_starts_as_foretold(
    version: str, is_killed: bool, tmp_path: Path
) -> None:
    other = None if version == "4.4.0" else version
    is_old = int(version.partition(".")[0]) < 4
    settings = {**(_OLD_SEGMENTS if is_old else _SMALL_SEGMENTS), **_PROTOCOLS}
    server = KafkaServer(tmp_path / "home", kafka_version=other, settings=settings)
    with server:
        fill(server.bootstrap, version)
        if is_killed:
            os.kill(server.pid, signal.SIGKILL)
    log_dirs = (server.log_dir, server.work_dir / "metadata")
    bounds = foretold_bounds(log_dirs, server.work_dir / "server.properties", version)
    assert {"orders-0", "orders-1", "users-0", "__consumer_offsets-0"} < {*bounds}
    with server:
        assert found_bounds(server.bootstrap, bounds) == bounds
        assert_whole(server.log_text(), log_dirs)


@pytest.mark.parametrize("is_killed", [False, True], ids=["clean", "killed"])
@pytest.mark.parametrize("version", ["3.9.2", "2.8.2", "1.1.1", "0.11.0.3", "0.10.2.2"])
def test_a_broker_with_zookeeper_starts_as_foretold(
    version: str, is_killed: bool, tmp_path: Path
) -> None:
    log_dirs = (tmp_path / "d1", tmp_path / "d2")
    settings = {
        "zookeeper.session.timeout.ms": _SESSION_MS,
        "log.dirs": ",".join(map(str, log_dirs)),
        **dict.fromkeys(_OF_ONE, 1),
        **_OLD_SEGMENTS,
    }

    def broker(name: str) -> AbstractContextManager[OldBroker]:
        jars = "kafka39" if version == "3.9.2" else "kafka010"
        other = None if version in ("3.9.2", "0.10.2.2") else version
        return old_broker(
            tmp_path / name, log_dirs[0], zookeeper.port, settings, jars=jars, kafka_version=other
        )

    with zookeeper_server(tmp_path / "zookeeper", {}) as zookeeper:
        with broker("1") as first:
            fill(first.address, version)
            if is_killed:
                first.kill()
                # Until its session has ended, ZooKeeper has the broker registered.
                time.sleep(2 * _SESSION_MS / 1000)
        bounds = foretold_bounds(log_dirs, tmp_path / "1" / "server.properties", version)
        assert {"orders-0", "orders-1", "users-0", "__consumer_offsets-0"} <= {*bounds}
        with broker("2") as second:
            assert found_bounds(second.address, bounds) == bounds
            assert_whole(second.log_file.read_text(errors="replace"), log_dirs)
