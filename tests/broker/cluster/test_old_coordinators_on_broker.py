"""The coordinators of a broker 3.9.2 with ZooKeeper, on partitions that they load or not."""

import re
import time
from pathlib import Path

import pytest

from kafkalog.coordination.groups.commit_status import offsets_partition_of
from kafkalog.inspection.groups.coordinator_loading import Consequence
from kafkalog.questions.groups.coordinators import CoordinatorSettings, coordinators
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from kafkalog.views.engine import LocalViews
from tests.support.broker.old_broker import OldBroker, old_broker
from tests.support.broker.releases.coordinator_cases import (
    CASES,
    GROUP_CASES,
    CoordinatorCase,
    commit,
)
from tests.support.broker.zookeeper_server import zookeeper_server

pytestmark = pytest.mark.deep

_TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE)
_SETTINGS = {
    "offsets.topic.num.partitions": len(CASES[CONSUMER_OFFSETS]),
    "transaction.state.log.num.partitions": len(CASES[TRANSACTION_STATE]),
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "log.cleaner.enable": "false",
}
_FAILED = {
    CONSUMER_OFFSETS: r"ERROR .*Error loading offsets from (__consumer_offsets-\d+) ",
    TRANSACTION_STATE: r"ERROR .*transactions from transaction log (__transaction_state-\d+) ",
}
_ENDED = {
    CONSUMER_OFFSETS: r"Finished loading offsets and group metadata from (\S+) in",
    TRANSACTION_STATE: r"Finished loading \d+ transaction metadata from (\S+) in",
}
_TORN = "torn-commit"
_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def test_a_broker_with_zookeeper_stops_at_the_same_partitions(tmp_path: Path) -> None:
    # F1005, F1006 and F1008.
    torn = next(number for number, case in enumerate(GROUP_CASES) if case.name == _TORN)
    group = next(
        name
        for name in (f"g{number}" for number in range(10_000))
        if offsets_partition_of(name, len(GROUP_CASES)) == torn
    )
    log_dir = tmp_path / "logs"
    with zookeeper_server(tmp_path / "zookeeper", {}) as zookeeper:
        with old_broker(
            tmp_path / "first", log_dir, zookeeper.port, _SETTINGS, jars="kafka39"
        ) as broker:
            for topic in _TOPICS:
                broker.run(
                    *("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic),
                    *("--partitions", str(len(CASES[topic])), "--replication-factor", "1"),
                    *("--config", "cleanup.policy=compact"),
                )
        for topic in _TOPICS:
            for number, case in enumerate(CASES[topic]):
                if (topic, number) == (CONSUMER_OFFSETS, torn):
                    case = CoordinatorCase(_TORN, [commit(group), *case.records[1:]])
                _fill(log_dir / f"{topic}-{number}", case)
        (log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
        (log_dir / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
        views = LocalViews([str(log_dir)], find_partitions([str(log_dir)]), 1)
        loads = coordinators(views, CoordinatorSettings("3.9.2"))
        with old_broker(
            tmp_path / "second", log_dir, zookeeper.port, _SETTINGS, jars="kafka39"
        ) as broker:
            failed = {place for topic in _TOPICS for place in _failed(broker, topic)}
            described = broker.run(_COMMAND, "--describe", "--group", group, "--offsets")
    assert failed == {f"{each.topic}-{each.partition}" for each in loads if not each.loads}
    (empty,) = (each for each in loads if (each.topic, each.partition) == (CONSUMER_OFFSETS, torn))
    assert empty.consequence is Consequence.EMPTY
    # The commit of a group in that partition is on the disk, and no client gets it.
    assert "orders" not in described


def _fill(directory: Path, case: CoordinatorCase) -> None:
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    (directory / f"{0:020d}.log").write_bytes(b"".join(case.batches()))


def _failed(broker: OldBroker, topic: str) -> set[str]:
    """Return the partitions that a broker could not load, once it has tried all."""
    deadline = time.monotonic() + 60
    while True:
        said = broker.log_file.read_text(errors="replace")
        failed = set(re.findall(_FAILED[topic], said + " "))
        ended = {place for place in re.findall(_ENDED[topic], said) if place.startswith(topic)}
        if len(failed | ended) == len(CASES[topic]):
            return failed
        assert time.monotonic() < deadline, f"{topic}: {sorted(failed | ended)}"
        time.sleep(0.2)
