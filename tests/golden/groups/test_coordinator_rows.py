"""Group metadata and transaction states of real brokers, against what the Admin client told."""

import json
import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.partition_log import topic_id
from tests.support.golden.coordinator_rows import Row, coordinator_rows
from tests.support.repository import Unpack

SETS = ("kafka44", "kafka39zk")
_TIMES = re.compile(r"transactionTimeoutMs=(\d+), transactionStartTimeMs=OptionalLong\[(\d+)\]")
_PARTITIONS = re.compile(r"topicPartitions=\[(.*)\]\)")


def _latest(rows: Iterator[Row], *key: str) -> list[Row]:
    """The last record of each key, tombstones left out."""
    ordered = sorted(rows, key=itemgetter("internal_partition", "record_offset"))
    latest = {tuple(row[name] for name in key): row for row in ordered}
    return [row for row in latest.values() if not row["is_tombstone"]]


def _described(golden: Path, kind: str) -> dict[str, Row]:
    groups = json.loads((golden / "admin.json").read_text())["groups"]
    described = {group: facts["describe"] for group, facts in groups.items()}
    return {group: facts for group, facts in described.items() if f"type={kind}" in facts["text"]}


def _names(assigned: list[Row], topics: dict[str, str]) -> list[str]:
    return sorted(
        f"{each['topic'] or topics[each['topic_id']]}-{partition}"
        for each in assigned or []
        for partition in each["partitions"]
    )


def _told_members(facts: Row) -> list[tuple[Any, ...]]:
    return sorted(
        (
            member["consumerId"],
            member["clientId"],
            member["host"],
            member["instanceId"],
            sorted(re.findall(r"[^\[\], ]+", member["assignment"])),
        )
        for member in facts["members"]
    )


@pytest.mark.parametrize("name", SETS)
def test_members_of_classic_groups_are_those_the_admin_client_described(
    name: str, unpacked: Unpack
) -> None:
    # T36: versions of GroupMetadataValue as these brokers write them.
    rows = _latest(
        coordinator_rows("group_metadata", unpacked(f"{name}.logs")), "group_id", "record_type"
    )
    found = {row["group_id"]: row for row in rows if row["group_type"] == "classic"}
    seen = 0
    for group, facts in _described(unpacked(f"{name}.golden"), "Classic").items():
        if not facts["members"]:
            assert not found.get(group, {}).get("members")
            continue
        row = found[group]
        members = sorted(
            (
                member["member_id"],
                member["client_id"],
                member["client_host"],
                member["group_instance_id"],
                _names(member["assigned"], {}),
            )
            for member in row["members"]
        )
        assert members == _told_members(facts)
        assert (row["protocol_type"], row["protocol"]) == ("consumer", facts["assignor"])
        assert all(member["subscribed_topics"] for member in row["members"])
        seen += 1
    assert seen > 0


def test_members_of_consumer_groups_are_those_the_admin_client_described(unpacked: Unpack) -> None:
    logs = unpacked("kafka44.logs")
    topics = {
        str(topic_id(log)): str(log.topic)
        for log in find_partitions([str(logs / "log-dirs")])
        if topic_id(log)
    }
    rows = _latest(coordinator_rows("group_metadata", logs), "group_id", "record_type", "member_id")
    by_type = {
        (row["record_name"], row["group_id"], row["member_id"]): row
        for row in rows
        if row["group_type"] == "consumer" and row["member_id"]
    }
    described = _described(unpacked("kafka44.golden"), "Consumer")
    assert any(facts["members"] for facts in described.values())
    for group, facts in described.items():
        members = [
            (
                member,
                row["client_id"],
                row["client_host"],
                row["instance_id"],
                _names(
                    by_type["ConsumerGroupCurrentMemberAssignment", group, member]["assigned"],
                    topics,
                ),
            )
            for (record, of, member), row in by_type.items()
            if record == "ConsumerGroupMemberMetadata" and of == group
        ]
        assert sorted(members) == _told_members(facts), group


@pytest.mark.parametrize("name", SETS)
def test_transaction_states_are_those_the_admin_client_described(
    name: str, unpacked: Unpack
) -> None:
    told = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())["transactions"]
    rows = _latest(
        coordinator_rows("transaction_states", unpacked(f"{name}.logs")), "transactional_id"
    )
    found = {row["transactional_id"]: row for row in rows}
    assert found.keys() == told.keys()
    for transactional_id, facts in told.items():
        row, text = found[transactional_id], facts["describe"]
        assert (row["state"], row["producer_id"]) == (facts["state"], facts["producerId"])
        if times := _TIMES.search(text):
            assert (row["timeout_ms"], row["started_ms"]) == tuple(map(int, times.groups()))
        partitions = _PARTITIONS.search(text)
        assert partitions is not None
        listed = sorted(filter(None, partitions.group(1).split(", ")))
        assert _names(row["partitions"], {}) == listed
