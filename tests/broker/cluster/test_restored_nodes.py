"""What real brokers do with nodes that `kafkalog restore` has written: replicas on several of them,
groups without members for long, logs without erased persons. F1038, F1055, F1200 and F1310 of
docs/restore.md."""

import json
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from kafkalog.command_line.main import kafkalog
from kafkalog.exit_codes import ExitCode
from tests.support.broker.cluster.committed_offsets import committed
from tests.support.broker.cluster.restored_cluster import (
    MARGIN_MS,
    PARTITIONS,
    WAIT_SECONDS,
    consumed,
    ledger,
    produced,
    restore,
)
from tests.support.broker.cluster.restored_node import RestoredNode
from tests.support.broker.kafka_server import KafkaServer
from tests.support.free_ports import free_ports
from tests.support.golden.restored_copies import AS_OF, AS_OF_MS

pytestmark = pytest.mark.deep

Unpacked = Callable[[str], Path]
COMMAND_TIME = "kafkalog.command_line.commands.disks.restore.time"
NODES = (1, 2, 3)
# The commits are older, and a broker looks every two seconds.
RETENTION = {"offsets.retention.minutes": 60}
LOOKS_SECONDS = 8


@pytest.fixture
def disks(unpacked: Unpacked) -> list[str]:
    return sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))


@pytest.fixture(scope="module")
def with_eligible_leaders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The disks of a cluster of Kafka 4.0 that keeps eligible leader replicas."""
    server = KafkaServer(tmp_path_factory.mktemp("old"), kafka_version="4.0.1")
    with server:
        feature = "eligible.leader.replicas.version=1"
        server.run_client("FeatureCommand", ["upgrade", "--feature", feature])
        server.create_topic("events", 3)
    return [str(server.log_dir), str(server.work_dir / "metadata")]


def out_of_sync(bootstrap: str, known: Collection[str] = PARTITIONS) -> list[tuple[str, int]]:
    """The partitions without a leader, or with a replica that is not in sync."""
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=WAIT_SECONDS).topics
    assert {*known} <= {*topics}
    return [
        (name, number)
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
        if partition.leader not in NODES or sorted(partition.isrs) != [*NODES]
    ]


def restored_nodes(
    given: list[str], tmp_path: Path, kafka_version: str | None = None
) -> list[RestoredNode]:
    free = free_ports(2 * len(NODES))
    places = [f"{node}@127.0.0.1:{free.pop()}/{free.pop()}" for node in NODES]
    target = tmp_path / "restored"
    nodes = ["--nodes", ",".join(places), "--replication", "3", "--to", str(target)]
    result = CliRunner().invoke(kafkalog, ["restore", *given, *nodes])
    assert result.exit_code in (ExitCode.DONE, ExitCode.FINDINGS), result.output
    return [
        RestoredNode(
            target / f"node-{node}", tmp_path / f"node-{node}", kafka_version=kafka_version
        )
        for node in NODES
    ]


def check_in_sync(nodes: list[RestoredNode], known: Collection[str]) -> None:
    """Start the nodes, and wait until all their replicas are in sync."""
    try:
        # None has started before a majority of them has.
        with ThreadPoolExecutor() as pool:
            [*pool.map(RestoredNode.__enter__, nodes)]
        deadline = time.monotonic() + WAIT_SECONDS
        while found := out_of_sync(nodes[0].bootstrap, known):
            assert time.monotonic() < deadline, found
            time.sleep(0.5)
        for node in nodes:
            assert node.warnings == []
            assert not list(node.data.glob("*-stray"))
    finally:
        for node in nodes:
            node.stop()


def test_replicas_on_three_nodes_come_in_sync(disks: list[str], tmp_path: Path) -> None:
    """F1038 and F1310."""
    check_in_sync(restored_nodes([*disks, "--as-of", AS_OF], tmp_path), PARTITIONS)


@pytest.mark.parametrize("kafka_version", ["4.0.1", "4.1.1", "4.4.0"])
def test_each_release_elects_leaders_where_replicas_can_be_eligible(
    with_eligible_leaders: list[str], tmp_path: Path, kafka_version: str
) -> None:
    """F1310: Kafka 4.0 treats the last known leader in another way than later releases."""
    nodes = restored_nodes(with_eligible_leaders, tmp_path, kafka_version)
    # F1062: the least release that opens it does.
    manifest = json.loads((tmp_path / "restored" / "manifest.json").read_text())
    assert manifest["least_release"] == "4.0"
    check_in_sync(nodes, ["events"])


def test_a_broker_serves_all_but_the_records_of_erased_persons(
    disks: list[str], unpacked: Unpacked, tmp_path: Path
) -> None:
    """F1200."""
    (tmp_path / "erased").write_text('{"key": "e58"}\n{"value-path": "$.user", "value": "u16"}\n')
    restore(disks, tmp_path / "restored", "--suppress", str(tmp_path / "erased"))
    with RestoredNode(tmp_path / "restored", tmp_path / "node") as node:
        found = consumed(node, "read_uncommitted", "events")
        rows = [
            row
            for row in ledger(unpacked("restore44.golden"), "events")
            if row["ack"] * 1000 < AS_OF_MS - MARGIN_MS
        ]
        erased = [row for row in rows if row["key"] == "e58" or '"user": "u16"' in row["value"]]
        assert erased
        for row in rows:
            value = found.get(("events", row["partition"], row["offset"]))
            assert value == (None if row in erased else row["value"].encode())
        assert produced(node, "new", "events")
        assert node.warnings == []


def commits(manifest: dict[str, list[dict[str, object]]]) -> dict[object, dict[object, object]]:
    found: dict[object, dict[object, object]] = {}
    for row in manifest["commits"]:
        if row["topic"] in PARTITIONS:
            own = found.setdefault(row["group_id"], {})
            own[row["topic"], row["partition"]] = row["committed_offset"]
    return found


def test_no_commit_expires_at_the_first_check(disks: list[str], tmp_path: Path) -> None:
    """F1055."""
    expected = commits(restore(disks, tmp_path / "restored"))
    assert expected
    with RestoredNode(tmp_path / "restored", tmp_path / "node", RETENTION) as node:
        time.sleep(LOOKS_SECONDS)
        for group, offsets in expected.items():
            assert committed(node, str(group)) == offsets


def test_commits_with_the_times_that_they_had_expire(
    disks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without F1055."""
    with monkeypatch.context() as patch:
        patch.setattr(COMMAND_TIME, SimpleNamespace(time_ns=lambda: AS_OF_MS * 1_000_000))
        expected = commits(restore(disks, tmp_path / "restored"))
    with RestoredNode(tmp_path / "restored", tmp_path / "node", RETENTION) as node:
        deadline = time.monotonic() + WAIT_SECONDS
        while any(committed(node, str(group)) for group in expected):
            assert time.monotonic() < deadline
            time.sleep(1)
