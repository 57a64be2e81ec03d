"""The image of a live cluster's metadata, now and at ten earlier moments, is what Kafka's own Admin
client said then, and the log replayed up to each snapshot equals the snapshot. Rules: F760 to F764,
F767 and F891."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from tests.support.broker.cluster.cluster_changes import ROUNDS, STAYS, ClusterChanges, users_of
from tests.support.broker.cluster.java_admin import Answers, java_admin
from tests.support.broker.cluster.kraft_cluster import KraftCluster
from tests.support.messages.metadata_images import compared_snapshots

SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": 20000, "min.insync.replicas": 1}
# What the Admin client says of each kind of row.
COLUMNS = {
    "topic": ("topic", "topic_id"),
    "partition": (
        *("topic", "partition", "leader", "replicas", "isr", "eligible_leader_replicas"),
        "last_known_elr",
    ),
    "config": ("resource_type", "resource_name", "name", "value"),
    "acl": (
        *("principal", "permission", "operation", "resource_type", "resource_name"),
        *("pattern_type", "host"),
    ),
    "user": ("user", "mechanism", "iterations"),
    "quota": ("entity", "quota", "value"),
    "feature": ("feature", "level"),
    "voter": ("voter_id", "voter_directory_id"),
}
MANY = ("topic", "partition", "config", "acl", "user", "quota")


class Moment(NamedTuple):
    """A moment at which nothing changed, and what the Admin client said."""

    offset: int
    time_ms: int
    answers: Answers


def rows(path: Path, *options: str) -> list[dict[str, Any]]:
    given = ["metadata", str(path), *options, "--show-secrets", "--format", "json"]
    result = CliRunner().invoke(kafkalog, given)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def image(path: Path, *moment: str) -> Answers:
    """What kafkalog says, in the form of the Admin client's answers."""
    found = {
        kind: sorted(
            tuple(row[name] for name in columns) for row in rows(path, "--by", kind, *moment)
        )
        for kind, columns in COLUMNS.items()
    }
    found["broker"] = []
    for row in rows(path, "--by", "broker", *moment):
        host, _, port = row["end_points"][0].removeprefix("PLAINTEXT://").rpartition(":")
        found["broker"].append((row["broker_id"], row["is_fenced"], host, int(port)))
    # Only a broker itself says how it is configured.
    away = {("broker", str(broker)) for broker, is_fenced, *_ in found["broker"] if is_fenced}
    found["config"] = [each for each in found["config"] if each[:2] not in away]
    return found


def compare(found: Answers, told: Answers) -> None:
    for kind, expected in told.items():
        assert found[kind] == expected, kind


def moments(cluster: KraftCluster) -> list[Moment]:
    """Change the cluster round by round, and ask after each."""
    found = []
    with java_admin(cluster.bootstrap) as admin:
        changes = ClusterChanges(cluster, admin)
        for number in range(ROUNDS):
            changes.make(number)
            answers = admin.answers()
            answers["user"] = users_of(cluster.nodes[STAYS].address)
            found.append(Moment(admin.end_offset(), time.time_ns() // 1_000_000, answers))
            time.sleep(0.01)
    return found


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_the_image_is_what_the_admin_client_said(tmp_path: Path) -> None:
    cluster = KraftCluster(
        tmp_path / "cluster", is_dynamic=True, controllers=1, brokers=2, settings=SETTINGS
    )
    try:
        cluster.start()
        found = moments(cluster)
        controller = cluster.nodes[1].metadata_dir
        compare(image(controller), found[-1].answers)
    finally:
        cluster.stop()
    for node in cluster.nodes.values():
        for moment in found:
            for options in (("--as-of-offset", moment.offset), ("--as-of", moment.time_ms)):
                compare(image(node.metadata_dir, *map(str, options)), moment.answers)
        assert compared_snapshots(node.metadata_dir) >= ROUNDS // 2
    made = Counter(row["kind"] for row in rows(controller, "--diff", "start", "end"))
    assert [kind for kind in MANY if made[kind] < 200] == []
    assert {"feature", "broker", "producer_ids", "controller"} <= {*made}
