"""Why leaders changed in a cluster of two live brokers 3.9.2, by the files of ZooKeeper: F1244."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.old_broker import OldBroker, old_broker
from tests.support.broker.zookeeper_server import zookeeper_server

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]

_TOPICS = "org.apache.kafka.tools.TopicCommand"
_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
_SETTINGS = {
    "offsets.topic.replication.factor": 1,
    "zookeeper.session.timeout.ms": 3000,
    "auto.leader.rebalance.enable": "false",
}
_WITHIN_SECONDS = 60


@pytest.fixture(scope="module")
def changes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The changes of a partition's leader and in-sync replicas, after the deeds below."""
    folder = tmp_path_factory.mktemp("leaders")
    with zookeeper_server(folder / "zookeeper", {}) as zookeeper:

        def broker(number: int, start: int) -> AbstractContextManager[OldBroker]:
            settings = {**_SETTINGS, "broker.id": number}
            place, log_dir = folder / f"broker{number}-{start}", folder / f"logs{number}"
            return old_broker(place, log_dir, zookeeper.port, settings, jars="kafka39")

        with broker(1, 1) as stays:
            with broker(0, 1):
                stays.run(_TOPICS, *_create("orders", "0:1"))
                until(stays, leader=0, isr="0,1")
            # Broker 0 has shut down.
            until(stays, leader=1, isr="1")
            with broker(0, 2) as again:
                until(stays, leader=1, isr="0,1")
                stays.run(_ELECTION, *_elect("orders"))
                until(stays, leader=0, isr="0,1")
                again.kill()
                until(stays, leader=1, isr="1")
    return list(diff(folder / "zookeeper" / "data"))


def _create(topic: str, assignment: str) -> list[str]:
    return ["--create", "--topic", topic, "--replica-assignment", assignment]


def _elect(topic: str) -> list[str]:
    return ["--election-type", "PREFERRED", "--topic", topic, "--partition", "0"]


def until(broker: OldBroker, *, leader: int, isr: str) -> None:
    """Wait until Kafka's tool says so."""
    deadline = time.monotonic() + _WITHIN_SECONDS
    while True:
        said = broker.run(_TOPICS, "--describe", "--topic", "orders")
        found = re.search(r"Leader: (\S+)\s.*Isr: (\S+)", said)
        assert found is not None
        if (found[1], sorted(found[2].split(","))) == (str(leader), isr.split(",")):
            return
        assert time.monotonic() < deadline, said
        time.sleep(0.5)


def diff(data_dir: Path) -> Iterator[dict[str, Any]]:
    given = ["metadata", str(data_dir), "--diff", "start", "end", "--by", "partition"]
    result = CliRunner().invoke(kafkalog, [*given, "--topic", "orders", "--format", "json"])
    assert result.exit_code == 0, result.stderr
    return map(json.loads, result.stdout.splitlines())


def test_each_change_of_the_leader_has_its_cause(changes: list[dict[str, Any]]) -> None:
    found = [
        (row["old"], row["new"], re.sub(r" at \S+", "", row["cause"]))
        for row in changes
        if row["column"] == "leader"
    ]
    assert found == [
        (0, 1, "broker 0 shut down: its session ended"),
        (1, 0, "the preferred leader was elected"),
        (0, 1, "the session of broker 0 had ended"),
    ]


def test_a_replica_that_caught_up(changes: list[dict[str, Any]]) -> None:
    causes = [row["cause"] for row in changes if row["column"] == "isr" and len(row["new"]) == 2]
    assert causes == ["broker 0 caught up"]
