"""What Kafka's own tools say of a cluster that `kafkalog restore` has written: what clients of the
old cluster had made of it by the moment. F1035, F1036, F1040, F1047 and F1049 of docs/restore.md.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker.cluster.restored_cluster import MARGIN_MS, ledger, restore
from tests.support.broker.cluster.restored_node import RestoredNode
from tests.support.broker.java_tools import run_tool
from tests.support.golden.restored_copies import AS_OF_MS

pytestmark = pytest.mark.deep

Unpacked = Callable[[str], Path]
# What a restore changes of topics: F1040 and F1047.
_CHANGED = ("retention.ms", "retention.bytes", "min.insync.replicas")


@pytest.fixture
def said(unpacked: Unpacked, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Call a tool, and return what it prints."""
    disks = sorted(map(str, (unpacked("restore44.logs") / "snapshots").glob("*/data")))
    restore(disks, tmp_path / "restored")
    with RestoredNode(tmp_path / "restored", tmp_path / "node") as node:

        def call(tool: str, *arguments: str) -> str:
            given = ["--bootstrap-server", node.bootstrap, *arguments]
            return run_tool(tool, given).stdout.decode()

        yield call


def deeds(golden: Path, *names: str) -> list[dict[str, Any]]:
    """What an administrator had done by the moment."""
    return [
        row
        for row in ledger(golden, "metadata")
        if row["what"] in names and row.get("ok") and row["after"] * 1000 <= AS_OF_MS
    ]


def test_tools_answer_as_at_the_moment(said: Callable[..., str], unpacked: Unpacked) -> None:
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
