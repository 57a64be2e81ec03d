"""Every column of view `group_metadata` against what kafka-dump-log printed of the same records.

Its JSON has Kafka's field names; here each column is said again by these.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalog.schemas import table_fields
from tests.support.golden.coordinator_rows import coordinator_rows
from tests.support.messages.printed_messages import LINE
from tests.support.repository import Unpack

Row = dict[str, Any]
# How many records there are, and how many members in them.
SETS = {"kafka44": (162, 11), "kafka39zk": (9, 6), "kafka010": (7, 4)}
TYPES = {
    2: ("classic", "GroupMetadata"),
    3: ("consumer", "ConsumerGroupMetadata"),
    4: ("consumer", "ConsumerGroupPartitionMetadata"),
    5: ("consumer", "ConsumerGroupMemberMetadata"),
    6: ("consumer", "ConsumerGroupTargetAssignmentMetadata"),
    7: ("consumer", "ConsumerGroupTargetAssignmentMember"),
    8: ("consumer", "ConsumerGroupCurrentMemberAssignment"),
    10: ("share", "ShareGroupMemberMetadata"),
    11: ("share", "ShareGroupMetadata"),
    12: ("share", "ShareGroupTargetAssignmentMetadata"),
    13: ("share", "ShareGroupTargetAssignmentMember"),
    14: ("share", "ShareGroupCurrentMemberAssignment"),
    15: ("share", "ShareGroupStatePartitionMetadata"),
    16: ("consumer", "ConsumerGroupRegularExpression"),
}
PLACES = {"cluster_id", "broker_id", "input_path", "file", "detail", "reason"}


def printed_rows(dumped: Path) -> Iterator[Row]:
    for path in sorted(dumped.rglob("__consumer_offsets-*/*.txt")):
        partition = int(path.parent.name.rpartition("-")[2])
        for line in path.read_text().splitlines():
            match = LINE.fullmatch(line)
            if match is None or not match[2].startswith("key: "):
                continue
            key_text, _, value_text = match[2].removeprefix("key: ").partition(" payload: ")
            key = json.loads(key_text)
            if int(key["type"]) >= 2:
                value = None if value_text == "<DELETE>" else json.loads(value_text)
                place = {
                    "internal_partition": partition,
                    "record_offset": int(match[1]),
                    "record_timestamp_ms": int(line.split("CreateTime: ")[1].split()[0]),
                }
                yield {**place, **printed_row(int(key["type"]), key["data"], value)}


def printed_row(number: int, key: Row, versioned: Row | None) -> Row:
    value = versioned["data"] if versioned else {}
    epochs = ("generation", "epoch", "assignmentEpoch", "memberEpoch")
    assigned = next(
        (value[name] for name in ("assignedPartitions", "topicPartitions") if name in value), None
    )
    is_regex = number == 16
    return {
        "record_type": number,
        "record_name": TYPES[number][1],
        "version": int(versioned["version"]) if versioned else None,
        "is_tombstone": versioned is None,
        "group_id": key.get("group") or key.get("groupId"),
        "group_type": TYPES[number][0],
        "member_id": key.get("memberId"),
        "epoch": next((value[name] for name in epochs if name in value), None),
        "validated_topology_epoch": None,
        "protocol_type": value.get("protocolType"),
        "protocol": value.get("protocol"),
        "leader": value.get("leader"),
        "state_timestamp_ms": value.get("currentStateTimestamp"),
        "member_state": value.get("state"),
        "instance_id": value.get("instanceId"),
        "rack_id": value.get("rackId"),
        "client_id": value.get("clientId"),
        "client_host": value.get("clientHost"),
        "subscribed_topics": value.get("topics" if is_regex else "subscribedTopicNames"),
        "subscribed_topic_regex": (
            key["regularExpression"] if is_regex else value.get("subscribedTopicRegex")
        ),
        "rebalance_timeout_ms": value.get("rebalanceTimeoutMs"),
        "server_assignor": value.get("serverAssignor"),
        "assigned": printed_partitions(assigned),
        "members": printed_members(value),
    }


def printed_partitions(assigned: list[Row] | None) -> list[Row] | None:
    if assigned is None:
        return None
    return [
        {
            "topic": each.get("topic"),
            "topic_id": each.get("topicId"),
            "partitions": each["partitions"],
        }
        for each in assigned
    ]


def printed_members(value: Row) -> list[Row] | None:
    if "members" not in value:
        return None
    return [
        {
            "member_id": member["memberId"],
            "group_instance_id": member.get("groupInstanceId"),
            "client_id": member["clientId"],
            "client_host": member["clientHost"],
            "rebalance_timeout_ms": member["rebalanceTimeout"],
            "session_timeout_ms": member["sessionTimeout"],
            "subscribed_topics": member["subscription"]["topics"],
            "assigned": printed_partitions(member["assignment"]["assignedPartitions"]),
        }
        for member in value["members"]
    ]


PRINTED_OF_MEMBERS = {
    *("member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout_ms"),
    *("session_timeout_ms", "subscribed_topics", "assigned"),
}


@pytest.mark.parametrize("name", SETS)
def test_every_column_is_what_kafka_dump_log_printed(name: str, unpacked: Unpack) -> None:
    # F192, T36
    printed = {
        (row["internal_partition"], row["record_offset"]): row
        for row in printed_rows(unpacked(f"{name}.messages"))
    }
    found = {
        (row["internal_partition"], row["record_offset"]): row
        for row in coordinator_rows("group_metadata", unpacked(f"{name}.logs"))
    }
    assert found.keys() == printed.keys()
    told = {field["name"] for field in table_fields("group_metadata")} - PLACES
    for place, row in found.items():
        assert row["reason"] is None
        shown = {key: value for key, value in row.items() if key in told}
        if shown["members"] is not None:
            # What Connect and Streams write in a member's bytes, Kafka's tool does not print.
            shown["members"] = [
                {key: value for key, value in member.items() if key in PRINTED_OF_MEMBERS}
                for member in shown["members"]
            ]
        assert shown == printed[place]
    members = sum(len(row["members"] or ()) for row in printed.values())
    assert (len(printed), members) == SETS[name]
