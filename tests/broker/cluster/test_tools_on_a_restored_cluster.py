"""What Kafka's own tools say of a cluster that `kafkalog restore` has written: what clients of the
old cluster had made of it by the moment. F1035, F1036, F1040, F1047 and F1049 of docs/restore.md.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker.cluster.restored_cluster import (
    MARGIN_MS,
    PARTITIONS,
    commits_at,
    ledger,
    restore,
)
from tests.support.broker.cluster.restored_node import RestoredNode
from tests.support.broker.java_tools import dump, run_tool
from tests.support.golden.restored_copies import AS_OF_MS

pytestmark = pytest.mark.deep

Unpacked = Callable[[str], Path]
# What a restore changes of topics: F1040 and F1047.
_CHANGED = ("retention.ms", "retention.bytes", "min.insync.replicas")


class Tools:
    """Kafka's tools on a restored cluster that runs, its manifest, and its files."""

    def __init__(self, node: RestoredNode, manifest: dict[str, Any]) -> None:
        self.node = node
        self.manifest = manifest

    def __call__(self, tool: str, *arguments: str) -> str:
        """Call a tool, and return what it prints."""
        given = ["--bootstrap-server", self.node.bootstrap, *arguments]
        return run_tool(tool, given).stdout.decode()


@pytest.fixture(scope="module")
def said(unpacked: Unpacked, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    disks = sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))
    home = tmp_path_factory.mktemp("tools")
    manifest = restore(disks, home / "restored")
    with RestoredNode(home / "restored", home / "node") as node:
        yield Tools(node, manifest)


def deeds(golden: Path, *names: str) -> list[dict[str, Any]]:
    """What an administrator had done by the moment."""
    return [
        row
        for row in ledger(golden, "metadata")
        if row["what"] in names and row.get("ok") and row["after"] * 1000 <= AS_OF_MS
    ]


def test_tools_answer_as_at_the_moment(said: Tools, unpacked: Unpacked) -> None:
    golden = unpacked("restore44.golden")
    topics: dict[str, tuple[str, int]] = {}
    configs: dict[str, dict[str, str]] = {}
    for row in deeds(golden, "create_topic", "delete_topic", "alter_config"):
        if row["what"] == "create_topic":
            topics[row["topic"]] = row["result"]["id"], row["partitions"]
            configs[row["topic"]] = dict(row["config"])
        elif row["what"] == "delete_topic":
            del topics[row["topic"]], configs[row["topic"]]
        else:
            configs[row["topic"]][row["key"]] = row["value"]
    described = said("org.apache.kafka.tools.TopicCommand", "--describe", "--exclude-internal")
    found = re.findall(r"Topic: (\S+)\s+TopicId: (\S+)\s+PartitionCount: (\d+)", described)
    assert {name: (topic_id, int(count)) for name, topic_id, count in found} == topics
    for topic, expected in configs.items():
        own = said("kafka.admin.ConfigCommand", "--describe", "--topic", topic)
        values = dict(re.findall(r"^\s+([\w.]+)=(.*?) sensitive=", own, re.MULTILINE))
        for name in _CHANGED:
            assert values.pop(name, None) in ("1", "-1", None)
            expected.pop(name, None)
        assert values == expected
    acls = said("org.apache.kafka.tools.AclCommand", "--list")
    pattern = re.compile(
        r"resourceType=(\w+), name=(\S+), patternType=(\w+).*\s+"
        r"\(principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)"
    )
    added = [acl for row in deeds(golden, "acls_add") for acl in row["acls"]]
    assert sorted(map(list, pattern.findall(acls))) == sorted(added)
    users = said("kafka.admin.ConfigCommand", "--describe", "--entity-type", "users")
    (quota,) = deeds(golden, "quota")
    assert f"'{quota['user']}' are {quota['key']}={float(quota['value'])}" in users
    known = re.findall(r"SCRAM credential configs for user-principal '(\w+)'", users)
    assert known == [row["user"] for row in deeds(golden, "scram")]
    transactions = said("org.apache.kafka.tools.TransactionsCommand", "list").splitlines()[1:]
    begun = [row for row in ledger(golden, "txns") if row["begin"] * 1000 < AS_OF_MS - MARGIN_MS]
    ids = {row["tx"].split(":")[0] for row in begun}
    states = {line.split()[0]: line.split()[3] for line in transactions}
    assert ids <= {*states}
    assert all(state.startswith("Complete") for state in states.values())


def test_groups_have_the_offsets_of_the_moment(said: Tools, unpacked: Unpacked) -> None:
    """F1052 and F1053: kafka-consumer-groups, by the ledger of commits, and kafka-share-groups, by
    that of acknowledgements."""
    groups = "org.apache.kafka.tools.consumer.group"
    described = said(f"{groups}.ConsumerGroupCommand", "--describe", "--all-groups")
    found: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for group, topic, number, offset in re.findall(
        r"^(\S+)\s+(\S+)\s+(\d+)\s+(\d+)\s+\d+\s+\d+\s", described, re.MULTILINE
    ):
        found[group][topic, int(number)] = int(offset)
    golden = unpacked("restore44.golden")
    assert found == commits_at(golden, said.manifest)
    states = said(f"{groups}.ConsumerGroupCommand", "--describe", "--all-groups", "--state")
    assert {line.split()[0] for line in states.splitlines() if " Empty " in line} == {*found}
    cuts = {
        (row["topic"], row["partition"]): row["cut_offset"] for row in said.manifest["partitions"]
    }
    done: dict[int, set[int]] = defaultdict(set)
    for row in ledger(golden, "share"):
        if row["ok"] and row["act"] != "release" and row["before"] * 1000 < AS_OF_MS + MARGIN_MS:
            done[row["partition"]].add(row["offset"])
    shared = said(f"{groups}.ShareGroupCommand", "--describe", "--all-groups")
    starts = re.findall(r"^g-share\s+events\s+(\d+)\s+(\d+)", shared, re.MULTILINE)
    assert len(starts) == PARTITIONS["events"]
    for number, start in ((int(number), int(start)) for number, start in starts):
        assert 0 < start <= cuts["events", number]
        assert set(range(start)) <= done[number]


def test_features_are_the_same(said: Tools, unpacked: Unpacked) -> None:
    """F1036. The tool is of 4.3.1, and does not know the name of the metadata.version of 4.4."""
    known = json.loads((unpacked("restore44.golden") / "admin" / "java.json").read_text())
    described = said("org.apache.kafka.tools.FeatureCommand", "describe")
    pattern = r"Feature: (\S+).*FinalizedVersionLevel: (?:UNKNOWN\W*)?(\d+)\W"
    found = {name: int(level) for name, level in re.findall(pattern, described)}
    assert found == {**known["features"], "kraft.version": 0}, described


def test_dump_log_prints_what_it_prints_of_a_copy(said: Tools) -> None:
    """F1044: all fields of each record below the cut, of the batches too."""
    compared = 0
    for row in said.manifest["partitions"]:
        if row["is_united"]:
            continue
        name = f"{row['topic']}-{row['partition']}"
        copy, restored = (
            dumped(directory, row["cut_offset"])
            for directory in (Path(row["copy"]), said.node.data / name)
        )
        assert restored == copy
        compared += len(copy)
    assert compared > 3000


def dumped(directory: Path, cut: int) -> list[str]:
    """The lines of records below an offset."""
    paths = sorted(directory.glob("*.log"))
    lines = dump(paths).splitlines()
    return [line for line in lines if line.startswith("| offset: ") and int(line.split()[2]) < cut]
