"""Kafka's directories in real ensembles: each znode of the listings taken from them says what the
tools of the same release printed. Rules: F432, F435, F440 to F449, F465."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.coordination.zookeeper.kafka_directories import DIRECTORY_VIEWS, kafka_rows
from kafkalog.coordination.zookeeper.znode_paths import below_root, cluster_roots
from tests.support.golden.znodes import Row, data_of, listing
from tests.support.repository import Unpack

SETS = ("kafka08", "kafka010", "kafka39zk")
_DESCRIBED = re.compile(
    r"\tTopic: (\S+)\tPartition: (\d+)\tLeader: (\d+)\tReplicas: (\S+)\tIsr: (\S+)"
)


def rows(folder: Path) -> Iterator[tuple[str, Row, Row]]:
    """View, values and znode."""
    znodes = listing(folder)
    roots = cluster_roots(znode["path"] for znode in znodes)
    assert roots == [""]
    for znode in znodes:
        place = below_root(znode["path"], roots)
        for found in kafka_rows(place.path, data_of(znode)) if place else ():
            yield found.view, dict(found.values), znode


def of_view(folder: Path, view: str) -> list[Row]:
    return [values for name, values, _ in rows(folder) if name == view]


@pytest.mark.parametrize("name", SETS)
def test_all_of_it_can_be_read(unpacked: Unpack, name: str) -> None:
    found = list(rows(unpacked(f"{name}.zookeeper")))
    assert [values for _, values, _ in found if values.get("reason")] == []
    assert {view for view, _, _ in found} == set(DIRECTORY_VIEWS) - (
        {"consumer_registry", "consumer_offsets", "partition_owners"}
        if name == "kafka39zk"
        else set()
    )
    # F465: what has data and is of no view says nothing about the cluster
    said = {znode["path"] for _, _, znode in found}
    silent = [znode["path"] for znode in listing(unpacked(f"{name}.zookeeper")) if znode["text"]]
    assert [path for path in silent if path not in said and "/zookeeper" not in path] == []


@pytest.mark.parametrize("name", SETS)
def test_who_ends_with_a_session(unpacked: Unpack, name: str) -> None:
    # F441, F443, F445, F448, F449: partition states are persistent, whatever a document says
    for view, values, znode in rows(unpacked(f"{name}.zookeeper")):
        is_ephemeral = znode["ephemeralOwner"] != "0x0"
        assert is_ephemeral is (
            view in ("broker_registry", "consumer_registry", "partition_owners")
            or values.get("kind") == "controller"
        )


@pytest.mark.parametrize("name", ["kafka08", "kafka010"])
def test_topics_are_what_the_tool_described(unpacked: Unpack, name: str) -> None:
    # F440, F441
    text = (unpacked(f"{name}.golden") / "tools" / "topics_describe.txt").read_text()
    told = {
        (topic, int(partition)): (int(leader), replicas, isr)
        for topic, partition, leader, replicas, isr in _DESCRIBED.findall(text)
    }
    folder = unpacked(f"{name}.zookeeper")
    states = {(row["topic"], row["partition"]): row for row in of_view(folder, "partition_states")}
    found = {
        (row["topic"], row["partition"]): (
            states[row["topic"], row["partition"]]["leader"],
            ",".join(map(str, row["replicas"])),
            ",".join(map(str, states[row["topic"], row["partition"]]["isr"])),
        )
        for row in of_view(folder, "topic_registry")
    }
    assert len(told) > 10 and found == told


def test_topics_of_the_newest_have_what_the_admin_client_received(unpacked: Unpack) -> None:
    # F440
    told = json.loads((unpacked("kafka39zk.golden") / "admin.json").read_text())
    folder = unpacked("kafka39zk.zookeeper")
    found: dict[str, set[int]] = {}
    for row in of_view(folder, "topic_registry"):
        found.setdefault(row["topic"], set()).add(row["partition"])
    partitions = {
        topic: {each["partition"] for each in facts["partitions"]}
        for topic, facts in told["topics"].items()
    }
    assert {topic: found[topic] for topic in partitions} == partitions
    (cluster,) = (r for r in of_view(folder, "cluster_znodes") if r["kind"] == "cluster_id")
    cluster_id = json.loads(cluster["value"])["id"]
    assert cluster_id in json.dumps(told["cluster"])  # F442


@pytest.mark.parametrize("name", ["kafka08", "kafka010"])
def test_offsets_and_owners_are_what_the_checker_printed(unpacked: Unpack, name: str) -> None:
    # F432, F448, F449: a group with its offsets in Kafka alone has none here
    folder = unpacked(f"{name}.zookeeper")
    owners = {
        (row["group_id"], row["topic"], row["partition"]): row["owner"]
        for row in of_view(folder, "partition_owners")
    }
    offsets = {
        (row["group_id"], row["topic"], row["partition"]): row["committed_offset"]
        for row in of_view(folder, "consumer_offsets")
    }
    told_owners, told_offsets = {}, {}
    for path in (unpacked(f"{name}.golden") / "tools").glob("offset_checker_*.txt"):
        for line in path.read_text().splitlines()[1:]:
            group, topic, partition, offset, _, _, owner = line.split()
            if owner != "none":
                told_owners[group, topic, int(partition)] = owner
            if not group.endswith("g-old-kafka"):
                told_offsets[group, topic, int(partition)] = int(offset)
    assert owners == told_owners
    assert set(offsets) == set(told_offsets)
    # Live groups went on committing between the tool and the listing.
    gone = {key: offset for key, offset in offsets.items() if key[0].endswith("g-old-gone")}
    assert gone == {key: told_offsets[key] for key in gone} != {}
    assert not {group for group, _, _ in offsets if group.endswith("g-old-kafka")}


@pytest.mark.parametrize("name", ["kafka08", "kafka010"])
def test_brokers_and_consumers_are_who_was_there(unpacked: Unpack, name: str) -> None:
    # F435, F444 to F447: as the README of the fixtures says
    folder = unpacked(f"{name}.zookeeper")
    (broker,) = of_view(folder, "broker_registry")
    assert (broker["broker_id"], broker["host"], broker["port"]) == (0, "localhost", 19092)
    assert broker["version"] == (1 if name == "kafka08" else 4)
    consumers = {
        (row["group_id"], row["consumer_id"], row["pattern"], row["subscribed"], row["streams"])
        for row in of_view(folder, "consumer_registry")
    }
    prefix = "o8." if name == "kafka08" else "old."
    static = [("zk", "c1"), ("zk", "c2")]
    expected = {
        (f"{prefix}g-old-{group}", f"{prefix}g-old-{group}_{prefix}{member}", "static", topic, 1)
        for group, member in static
        for topic in (f"{prefix}multi-3", f"{prefix}codec-none")
    }
    dual, by_filter = f"{prefix}g-old-dual", f"{prefix}g-old-filter"
    expected.add((dual, f"{dual}_{prefix}d1", "static", f"{prefix}codec-gzip", 1))
    expression = prefix.replace(".", "\\.") + "codec-.*"
    expected.add((by_filter, f"{by_filter}_{prefix}f1", "white_list", expression, 1))
    assert consumers == expected
