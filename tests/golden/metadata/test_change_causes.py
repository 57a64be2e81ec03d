"""Why partitions' leaders changed, in the metadata of three brokers 4.4.0 that were stopped and
started one after another, with unclean elections between: F1244."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.coordination.metadata.image import Change
from kafkalog.inspection.metadata.change_causes import with_causes
from kafkalog.inspection.metadata.replay import MetadataChange
from tests.support.repository import Unpack

Row = dict[str, Any]
BEFORE: Row = {"leader": 1, "isr": [1, 2, 3], "replicas": [1, 2, 3], "directories": ["a", "b", "c"]}


def changes(unpacked: Unpack, *arguments: str) -> str:
    path = unpacked("diverged44.logs") / "node-1" / "metadata"
    given = ["metadata", str(path), "--diff", "start", "end", "--by", "partition", *arguments]
    result = CliRunner().invoke(kafkalog, given)
    assert result.exit_code == 0
    return result.stdout


def test_a_change_of_a_leader_keeps_the_record_that_caused_it(unpacked: Unpack) -> None:
    found = [
        json.loads(line)
        for line in changes(unpacked, "--topic", "orders", "--format", "json").splitlines()
    ]
    of_leader = [
        (row["old"], row["new"], row["cause"], row["cause_offset"])
        for row in found
        if (row["column"], row["partition"]) == ("leader", 0)
    ]
    # By the records about brokers, which kafka-dump-log shows at these offsets.
    assert of_leader == [
        (12, 11, "broker 12 shut down", 62),
        (11, -1, "broker 11 shut down", 72),
        (-1, 11, "broker 11 was unfenced", 101),
        (11, -1, "broker 11 shut down", 112),
        (-1, 12, "broker 12 was unfenced, unclean election", 124),
        (12, -1, "broker 12 shut down", 132),
        (-1, 13, "broker 13 was unfenced, unclean election", 145),
        (13, -1, "broker 13 shut down", 157),
        (-1, 11, "broker 11 was unfenced, unclean election", 169),
        (11, -1, "broker 11 shut down", 178),
    ]
    assert "broker 13 was unfenced, unclean election" in changes(unpacked)


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        ({"leader": 2}, "a leader was elected"),
        ({"leader": 4, "isr": [4]}, "unclean election"),
        ({"isr": [1, 2]}, "broker 3 fell behind: the leader removed it from those in sync"),
        ({"adding_replicas": [4]}, "reassignment"),
        ({"directories": ["a", "b", "d"]}, "a replica is in another log directory"),
        ({"partition_epoch": 1}, None),
    ],
)
def test_a_change_without_a_record_about_a_broker_says_it_itself(
    after: Row, cause: str | None
) -> None:
    change = Change("partition", ("id", 0), BEFORE, {**BEFORE, **after}, "orders")
    ((_, found),) = with_causes([MetadataChange(5, 1000, "PartitionChangeRecord", change)])
    assert (None if found is None else found.words) == cause


def test_only_records_of_the_same_time_are_causes() -> None:
    # The record about a fenced broker comes after those about its partitions.
    fenced = Change("broker", (3,), {"is_fenced": False}, {"is_fenced": True}, None)
    moved = Change("partition", ("id", 0), BEFORE, {**BEFORE, "isr": [1, 2]}, "orders")
    partition = MetadataChange(5, 1000, "PartitionChangeRecord", moved)
    for time_ms, offset in ((1000, 6), (1001, None)):
        broker = MetadataChange(6, time_ms, "BrokerRegistrationChangeRecord", fenced)
        ((_, found), (_, none)) = with_causes([partition, broker])
        assert none is None
        assert found is not None
        assert found.offset == offset
    back = Change("partition", ("id", 0), {**BEFORE, "leader": 2}, BEFORE, "orders")
    ((_, found),) = with_causes([MetadataChange(7, 1002, "PartitionChangeRecord", back)])
    assert found is not None
    assert found.words == "the preferred leader was elected"
