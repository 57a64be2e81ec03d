"""What `kafka-get-offsets` printed_offsets and the admin client received. F146 to F148."""

import json
from collections.abc import Callable

import pytest

from kafkalog.inspection.logs.log_offsets import (
    earliest_local_offset,
    earliest_offset,
    latest_offset,
    log_end_offset,
    offset_of_max_timestamp,
)
from kafkalog.storage.partition_log import PartitionLog
from tests.support.golden.answered_offsets import partitions, printed_offsets
from tests.support.repository import Unpack

BROKERS = ("kafka44", "kafka39zk", "tiered43")
# Their largest timestamp is in the remote store.
ONLY_REMOTE = ("tier.tiered-0", "tier.tiered-1")


def answers(logs: dict[str, PartitionLog], question: Callable[[PartitionLog], int]) -> object:
    return {name: question(log) for name, log in logs.items()}


@pytest.mark.parametrize("name", BROKERS)
@pytest.mark.parametrize(
    ("time", "question"),
    [(-2, earliest_offset), (-1, latest_offset), (-1, log_end_offset)],
    ids=["earliest", "latest", "log end"],
)
def test_the_tool_prints_the_same_ends_of_every_log(
    name: str, time: int, question: Callable[[PartitionLog], int], unpacked: Unpack
) -> None:
    # F95 to F97, F146, F147: with a single replica the high watermark is the log end.
    expected = printed_offsets(unpacked(f"{name}.golden"), time)
    logs = partitions(unpacked(f"{name}.logs"))
    assert answers({key: logs[key] for key in expected}, question) == expected
    assert len(expected) > 3


def test_the_tool_prints_the_same_first_local_offsets_of_tiered_topics(unpacked: Unpack) -> None:
    # F146
    golden = unpacked("tiered43.golden")
    expected, earliest = printed_offsets(golden, -4), printed_offsets(golden, -2)
    logs = partitions(unpacked("tiered43.logs"))
    assert answers({key: logs[key] for key in expected}, earliest_local_offset) == expected
    assert any(expected[key] > earliest[key] for key in expected)


@pytest.mark.parametrize("name", BROKERS)
def test_the_same_record_has_the_largest_timestamp(name: str, unpacked: Unpack) -> None:
    # F148: with compacted, transactional, LogAppendTime and empty logs among them.
    admin = json.loads((unpacked(f"{name}.golden") / "admin.json").read_text())
    logs = partitions(unpacked(f"{name}.logs"))
    told = {
        key: None if answer["offset"] == -1 else (answer["offset"], answer["timestamp"])
        for key, answer in admin["offsets"]["max_timestamp"].items()
        if key not in ONLY_REMOTE
    }
    found = {key: offset_of_max_timestamp(logs[key]) for key in told}
    assert found == told
    assert None in found.values()


@pytest.mark.parametrize("name", ["kafka44", "kafka39zk"])
def test_the_tool_prints_these_offsets_of_the_largest_timestamp(
    name: str, unpacked: Unpack
) -> None:
    # F148
    # The tool leaves out partitions without an answer.
    golden = unpacked(f"{name}.golden")
    logs = partitions(unpacked(f"{name}.logs"))
    found = {key: offset_of_max_timestamp(logs[key]) for key in printed_offsets(golden, -1)}
    told = {key: answer.offset for key, answer in found.items() if answer is not None}
    assert told == printed_offsets(golden, -3)
