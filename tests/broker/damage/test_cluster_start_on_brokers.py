"""What `kafkalog recover` says of the directories of all nodes of a cluster is what the nodes make
of them, together. Rules: docs/format.md F960 to F973, F1188 to F1191, F1211
and F1291."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkalog.command_line.main import kafkalog
from tests.support.broker.cluster.kraft_cluster import KraftCluster

pytestmark = pytest.mark.deep
CONTROLLER, FIRST, SECOND = 1, 11, 12
# Partitions by their topic's replicas.
TOPICS = {"both": [[FIRST, SECOND], [SECOND, FIRST]], "first": [[FIRST]], "second": [[SECOND]]}
_SETTLED_SECONDS = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftCluster]:
    """A controller and two brokers with records, which have stopped."""
    home = tmp_path_factory.mktemp("cluster")
    found = KraftCluster(home, False, controllers=1, brokers=2)
    try:
        found.start()
        admin = AdminClient({"bootstrap.servers": found.bootstrap})
        new = [NewTopic(name, len(of), replica_assignment=of) for name, of in TOPICS.items()]
        for made in admin.create_topics(new).values():
            made.result(30)
        producer = Producer({"bootstrap.servers": found.bootstrap})
        for number in range(60):
            for name in TOPICS:
                producer.produce(name, b"value", key=str(number))
        assert producer.flush(30) == 0
        found.stop()
        yield found
    finally:
        found.stop(kill=True)


def replicas(cluster: KraftCluster, topic: str) -> list[Path]:
    return [cluster.nodes[each].data_dir / f"{topic}-0" for each in (FIRST, SECOND)]


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SETTLED_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def told(cluster: KraftCluster, by: str) -> list[dict[str, Any]]:
    nodes = cluster.nodes.values()
    paths = dict.fromkeys(str(path) for it in nodes for path in (it.metadata_dir, it.data_dir))
    given = ["recover", *paths, "--by", by, "--all", "--format", "json", "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    return [json.loads(line) for line in result.stdout.splitlines()]


def foretold(cluster: KraftCluster) -> tuple[dict[int, Any], set[str]]:
    """Return whether each node starts, and the partitions that no node leads."""
    starts = {row["node_id"]: row["broker_starts"] for row in told(cluster, "node")}
    plan = [row for row in told(cluster, "partition") if row["topic"] in TOPICS]
    led = {f"{row['topic']}-{row['partition']}" for row in plan if row["has_leader"]}
    return starts, names() - led


def names() -> set[str]:
    return {f"{name}-{each}" for name, of in TOPICS.items() for each in range(len(of))}


def leaderless(cluster: KraftCluster, expected: set[str]) -> set[str]:
    """Return the partitions that no broker leads, once they are those that are expected, or after
    a while."""
    deadline = time.monotonic() + _SETTLED_SECONDS
    while True:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        topics = admin.list_topics(timeout=20).topics
        found = {
            f"{name}-{each}"
            for name in TOPICS
            for each, of in topics[name].partitions.items()
            if of.leader < 0
        }
        if found == expected or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


def metadata_log(cluster: KraftCluster, node_id: int) -> Path:
    folder = cluster.nodes[node_id].metadata_dir / "__cluster_metadata-0"
    return max(folder.glob("*.log"))


def test_a_copy_that_ends_inside_a_batch_of_the_leader(cluster: KraftCluster) -> None:
    # F1291: the broker fetches the rest from the controller.
    path = metadata_log(cluster, SECOND)
    path.write_bytes(path.read_bytes()[:-5])
    starts, without = foretold(cluster)
    assert starts == {CONTROLLER: True, FIRST: True, SECOND: True}
    assert without == set()
    cluster.start()
    try:
        assert leaderless(cluster, without) == without
    finally:
        cluster.stop()


def test_a_controller_that_is_behind_its_brokers(cluster: KraftCluster) -> None:
    # F1291: it was restored from a backup, and knows neither topic.
    folder = cluster.nodes[CONTROLLER].metadata_dir
    backup = folder.with_name("backup")
    shutil.copytree(folder, backup)
    cluster.start()
    try:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for made in admin.create_topics([NewTopic("late", 1, 2)]).values():
            made.result(30)
        wait_until(lambda: all(path.is_dir() for path in replicas(cluster, "late")))
    finally:
        cluster.stop()
    shutil.rmtree(folder)
    backup.rename(folder)
    aside = {row["directory"] for row in told(cluster, "partition") if row["is_set_aside"]}
    assert aside == set(map(str, replicas(cluster, "late")))
    cluster.start()
    try:
        wait_until(lambda: not any(path.exists() for path in replicas(cluster, "late")))
    finally:
        cluster.stop()


def test_a_disk_that_was_lost_and_is_formatted_again(cluster: KraftCluster) -> None:
    # F1211: the metadata assigns the partitions to a directory.id that no disk has. This broker
    # stopped last, and was alone in sync.
    cluster.lose(FIRST)
    cluster.format(cluster.nodes[FIRST])
    starts, without = foretold(cluster)
    assert starts == {CONTROLLER: True, FIRST: True, SECOND: True}
    assert without == {"both-0", "both-1", "first-0"}
    plan = [row for row in told(cluster, "partition") if row["topic"] in TOPICS]
    assert {f"{row['topic']}-{row['partition']}" for row in plan if row["begins_empty"]} == without
    cluster.start()
    try:
        # Whether it leads them at once depends on milliseconds.
        assert leaderless(cluster, without) <= without
        cluster.stop(FIRST)
        cluster.start(FIRST)
        assert leaderless(cluster, set()) == set()
        assert {name: ends(cluster)[name] for name in without} == dict.fromkeys(without, 0)
    finally:
        cluster.stop()


def ends(cluster: KraftCluster) -> dict[str, int]:
    """Return where the partitions end for consumers."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends"})
    try:
        found = {}
        for name in names():
            topic, _, number = name.rpartition("-")
            place = TopicPartition(topic, int(number))
            found[name] = int(consumer.get_watermark_offsets(place, timeout=20)[1])
        return found
    finally:
        consumer.close()
