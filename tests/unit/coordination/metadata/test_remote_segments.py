"""The states of segments in tiered storage. Rule: F559; the numbers are those of Kafka's
RemoteLogSegmentState and RemotePartitionDeleteState."""

from typing import Any

import pytest

from kafkalog.coordination.metadata.remote_segments import RemoteSegments

PLACE = {"name": "orders", "id": "T" * 22, "partition": 3}


def segment(state: int, segment_id: str = "a") -> dict[str, Any]:
    return {
        "remoteLogSegmentId": {"topicIdPartition": PLACE, "id": segment_id},
        "startOffset": 5,
        "endOffset": 9,
        "brokerId": 1,
        "eventTimestampMs": 7,
        "segmentLeaderEpochs": [{"leaderEpoch": 2, "offset": 4}],
        "segmentSizeInBytes": 100,
        "remoteLogSegmentState": state,
    }


def states(*records: tuple[int | None, dict[str, Any] | None]) -> tuple[dict[str, str], int]:
    found = RemoteSegments()
    for record_type, value in records:
        found.take(record_type, value)
    return {key: each.state for key, each in found.segments.items()}, found.unexplained


@pytest.mark.parametrize(
    ("updates", "state"),
    [((), "copying"), ((1,), "copied"), ((1, 2), "deleting"), ((1, 2, 3), "deleted")],
)
def test_updates_change_the_state(updates: tuple[int, ...], state: str) -> None:
    records = [(0, segment(0)), *((1, segment(each)) for each in updates)]
    assert states(*records) == ({"a": state}, 0)


@pytest.mark.parametrize(("number", "state"), [(0, "deleting"), (1, "deleting"), (2, "deleted")])
def test_a_deleted_partition_deletes_its_segments(number: int, state: str) -> None:
    deletion = {
        "topicIdPartition": PLACE,
        "remotePartitionDeleteState": number,
        "eventTimestampMs": 8,
    }
    other = segment(1, "b")
    other["remoteLogSegmentId"]["topicIdPartition"] = {**PLACE, "partition": 4}
    found = states((0, segment(1)), (0, other), (2, deletion))
    assert found == ({"a": state, "b": "copied"}, 0)


def test_what_explains_nothing_is_counted() -> None:
    assert states((None, None), (1, segment(1)), (0, segment(7)), (9, segment(1))) == ({}, 4)
