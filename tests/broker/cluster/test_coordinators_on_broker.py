"""Coordinators of real brokers on partitions that they load or not, against what kafkalog says."""

import re
import time
from pathlib import Path

import pytest

from kafkalog.coordination.metadata.releases import known_release
from kafkalog.questions.groups.coordinators import CoordinatorSettings, coordinators
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kafkalog.views.engine import LocalViews
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.partition_files import demand_recovery
from tests.support.broker.releases.coordinator_cases import CASES, CoordinatorCase

pytestmark = pytest.mark.deep

_PARTITIONS = {
    CONSUMER_OFFSETS: "offsets.topic.num.partitions",
    TRANSACTION_STATE: "transaction.state.log.num.partitions",
    SHARE_GROUP_STATE: "share.coordinator.state.topic.num.partitions",
}
_ENDED = {
    CONSUMER_OFFSETS: r"(Failed to load|Finished loading of) metadata from (\S+) with epoch",
    SHARE_GROUP_STATE: r"(Failed to load|Finished loading of) metadata from (\S+) with epoch",
    TRANSACTION_STATE: r"(Finished) loading \d+ transaction metadata from (\S+) in",
}
_FAILED = {
    CONSUMER_OFFSETS: r"Failed to load metadata from (\S+) with epoch",
    SHARE_GROUP_STATE: r"Failed to load metadata from (\S+) with epoch",
    TRANSACTION_STATE: r"Error loading transactions from transaction log (\S+) ",
}
_LONGEST_SECONDS = 60


@pytest.mark.parametrize("kafka_version", ["4.4.0", "4.1.1", "4.0.1"])
def test_brokers_stop_at_the_same_partitions(kafka_version: str, tmp_path: Path) -> None:
    # F1000 to F1007. Until 4.1 a cluster has no share coordinator unless one asks for it.
    release = known_release(kafka_version)
    topics = [topic for topic in CASES if topic != SHARE_GROUP_STATE or release == "4.4"]
    settings = {_PARTITIONS[topic]: len(CASES[topic]) for topic in topics}
    server = KafkaServer(tmp_path / "kafka", settings=settings, kafka_version=kafka_version)
    with server:
        for topic in topics:
            server.create_topic(topic, len(CASES[topic]), {"cleanup.policy": "compact"})
    for topic in topics:
        for number, case in enumerate(CASES[topic]):
            _fill(server.log_dir / f"{topic}-{number}", case)
    demand_recovery(server.log_dir)
    log_dirs = [str(server.log_dir)]
    views = LocalViews(log_dirs, find_partitions(log_dirs), 1)
    ours = {
        f"{load.topic}-{load.partition}"
        for load in coordinators(views, CoordinatorSettings(kafka_version))
        if not load.loads
    }
    with server:
        failed = {place for topic in topics for place in _failed(server, topic, len(CASES[topic]))}
    named = {f"{topic}-{n}": case.name for topic in topics for n, case in enumerate(CASES[topic])}
    assert {named[each] for each in failed} == {named[each] for each in ours}
    assert failed == ours
    assert failed == {
        f"{topic}-{number}"
        for topic in topics
        for number, case in enumerate(CASES[topic])
        if case.stops(release) is not None
    }


def _fill(directory: Path, case: CoordinatorCase) -> None:
    for path in directory.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    (directory / f"{0:020d}.log").write_bytes(b"".join(case.batches()))


def _failed(server: KafkaServer, topic: str, count: int) -> set[str]:
    """Return the partitions that a broker could not load, once it has tried all."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    while True:
        said = server.log_text()
        ended = {match[2] for match in re.finditer(_ENDED[topic], said)}
        ended = {place for place in ended if place.startswith(topic)}
        if len(ended) == count:
            found = {match[1] for match in re.finditer(_FAILED[topic], said)}
            return {place for place in found if place.startswith(topic)}
        assert time.monotonic() < deadline, f"{topic}: {len(ended)} of {count} partitions"
        time.sleep(0.2)
