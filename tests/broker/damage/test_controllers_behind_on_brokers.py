"""Controllers that were restored from older copies: what `kafkalog recover` says of them, and what
real controllers and brokers made of it. Rules: docs/format.md F1208, F1209
and F1291."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkalog.command_line.main import kafkalog
from tests.support.broker.cluster.kraft_cluster import KraftCluster

pytestmark = pytest.mark.deep
BROKER = 11
METADATA = "__cluster_metadata-0"
LEADS = "Completed transition to Leader"
_SETTLED_SECONDS = 60


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SETTLED_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def make_topic(cluster: KraftCluster, name: str, replicas: Sequence[int]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(name, 1, replica_assignment=[list(replicas)])
    for made in admin.create_topics([new]).values():
        made.result(30)
    wait_until(lambda: all(place(cluster, each, name).is_dir() for each in replicas))


def place(cluster: KraftCluster, node_id: int, topic: str) -> Path:
    return cluster.nodes[node_id].data_dir / f"{topic}-0"


def topics(cluster: KraftCluster) -> dict[str, Any]:
    """Return the topics that the brokers know. Whether a partition of killed nodes gets a leader
    while one of them is missing depends on who is fenced first: 4.4 takes brokers that come back
    out of the replicas in sync, but not the last one, which can be the missing one."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=20).topics


def leader(cluster: KraftCluster, topic: str) -> int | None:
    """Return the leader of partition 0; None without one, or without the topic."""
    found = topics(cluster).get(topic)
    partition = None if found is None else found.partitions.get(0)
    return None if partition is None or partition.leader < 0 else int(partition.leader)


def told(cluster: KraftCluster, node_ids: Sequence[int]) -> tuple[int, str, set[str]]:
    """Return the exit code, what is said, and the directories that are set aside, of nodes."""
    nodes = [cluster.nodes[each] for each in node_ids]
    paths = dict.fromkeys(str(path) for it in nodes for path in (it.metadata_dir, it.data_dir))
    given = ["recover", *paths, "--processes", "1"]
    text = CliRunner().invoke(kafkalog, given)
    rows: list[dict[str, Any]] = [
        json.loads(line)
        for line in CliRunner()
        .invoke(kafkalog, [*given, "--all", "--format", "json"])
        .stdout.splitlines()
    ]
    return text.exit_code, text.stdout, {it["directory"] for it in rows if it["is_set_aside"]}


def restored_from_older_copies(cluster: KraftCluster, replicas: Sequence[int]) -> int:
    """Make topic `early`, copy the metadata, make topic `late`; return the node that led the
    controllers last. The cluster does not run afterwards."""
    cluster.start()
    make_topic(cluster, "early", replicas)
    cluster.stop()
    for each in (1, 2, 3):
        folder = cluster.nodes[each].metadata_dir / METADATA
        shutil.copytree(folder, cluster.nodes[each].home / "older")
    cluster.start()
    make_topic(cluster, "late", replicas)
    # A clean stop of one after the other would elect others, or none.
    cluster.stop(kill=True)
    states = [
        json.loads((cluster.nodes[each].metadata_dir / METADATA / "quorum-state").read_text())
        for each in (1, 2, 3)
    ]
    return int(max(states, key=lambda state: state["leaderEpoch"])["leaderId"])


def restore(cluster: KraftCluster, *node_ids: int) -> None:
    for each in node_ids:
        folder = cluster.nodes[each].metadata_dir / METADATA
        shutil.rmtree(folder)
        shutil.copytree(cluster.nodes[each].home / "older", folder)


class Restored(NamedTuple):
    """Three controllers, all but the one that led last restored from copies without topic `late`,
    and a broker that has it."""

    cluster: KraftCluster
    newest: int
    older: tuple[int, int]


@pytest.fixture
def restored(tmp_path: Path) -> Iterator[Restored]:
    cluster = KraftCluster(tmp_path, is_dynamic=False, controllers=3, brokers=1)
    try:
        newest = restored_from_older_copies(cluster, [BROKER])
        first, second = (each for each in (1, 2, 3) if each != newest)
        restore(cluster, first, second)
        yield Restored(cluster, newest, (first, second))
    finally:
        cluster.stop(kill=True)


def test_a_majority_that_is_behind_decides_without_the_newest_controller(
    restored: Restored,
) -> None:
    # F1208: also where the newest controller is missing.
    cluster, newest, older = restored
    late = place(cluster, BROKER, "late")
    for given in ([*older, BROKER], [1, 2, 3, BROKER]):
        code, text, aside = told(cluster, given)
        assert (code, aside) == (1, {str(late)})
        assert (
            f"can still become the leader of the controllers ({len(given) - 1} of 3 are here)"
            in text
        )
        assert "METADATA CAN BE GIVEN UP" in text
    cluster.start(*older, BROKER)
    wait_until(lambda: not late.exists())
    assert leader(cluster, "early") == BROKER
    # The newest one gives up what it has, too.
    cluster.start(newest)
    assert leader(cluster, "late") is None


def test_the_newest_controller_leads_if_the_line_is_followed(restored: Restored) -> None:
    # F1208: with one other it is needed for a majority, and only it can lead.
    cluster, newest, (first, second) = restored
    _, text, _ = told(cluster, [1, 2, 3, BROKER])
    only = f"so that only node {newest} can lead; "
    assert f"    start node {newest} and 1 other controller first, {only}" in text
    cluster.start(first, newest)
    wait_until(lambda: LEADS in cluster.nodes[first].log + cluster.nodes[newest].log)
    assert LEADS in cluster.nodes[newest].log
    cluster.start(second, BROKER)
    wait_until(lambda: leader(cluster, "late") == BROKER)
    assert leader(cluster, "early") == BROKER
    cluster.stop()
    code, text, aside = told(cluster, [1, 2, 3, BROKER])
    assert (code, aside) == (0, set())
    assert text.endswith("nothing is lost\n")


@pytest.fixture
def combined(tmp_path: Path) -> Iterator[KraftCluster]:
    """Three nodes, each controller and broker."""
    cluster = KraftCluster(tmp_path, False, controllers=3, brokers=0, is_combined=True)
    try:
        yield cluster
    finally:
        cluster.stop(kill=True)


def test_one_of_three_combined_nodes_is_older_and_one_is_missing(combined: KraftCluster) -> None:
    # F1208: of the two that are here only the newer one can lead, and nothing is lost.
    newest = restored_from_older_copies(combined, [1, 2, 3])
    older, missing = (each for each in (1, 2, 3) if each != newest)
    restore(combined, older)
    combined.lose(missing)
    code, text, aside = told(combined, [older, newest])
    assert (code, aside) == (0, set()), text
    assert "METADATA CAN BE GIVEN UP" not in text
    combined.start(older, newest)
    wait_until(lambda: "late" in topics(combined))
    assert all(place(combined, each, "late").is_dir() for each in (older, newest))


def test_a_controller_that_led_last_ends_with_an_older_copy(combined: KraftCluster) -> None:
    # F1209: another one answers that it leads, in an epoch that it does not know.
    led = restored_from_older_copies(combined, [1, 2, 3])
    other, missing = (each for each in (1, 2, 3) if each != led)
    restore(combined, led)
    combined.lose(missing)
    code, text, _ = told(combined, [led, other])
    assert code == 1
    assert f"Node {led} does NOT start with Kafka" in text
    combined.launch(led, other)
    process = combined.nodes[led].process
    wait_until(lambda: process is not None and process.poll() is not None)
    assert "which is inconsistent with current leader" in combined.nodes[led].log
    combined.stop()
    (line,) = [each.strip() for each in text.splitlines() if each.startswith("    cp -p ")]
    subprocess.run(["bash", "-c", line], check=True)
    assert told(combined, [led, other])[0] == 0
    combined.start(led, other)
    wait_until(lambda: "late" in topics(combined))
