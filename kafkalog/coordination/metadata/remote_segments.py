"""Which segments tiered storage holds, by the records of `__remote_log_metadata`.

Rules: docs/remote.md F559 and F953.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkalog.wire.murmur2 import partition_of_key

COPYING, COPIED, DELETING, DELETED = "copying", "copied", "deleting", "deleted"
_STATES = (COPYING, COPIED, DELETING, DELETED)
# Of a partition: marked for deletion, begun, finished.
_PARTITION_STATES = (DELETING, DELETING, DELETED)
_SEGMENT, _UPDATE, _PARTITION = 0, 1, 2


@dataclass(slots=True)
class RemoteSegment:
    """A segment and its state; `end_offset` is its last offset, `epochs` the leader epochs of its
    records with the offsets where they begin."""

    topic: str
    partition: int
    topic_id: str
    segment_id: str
    start_offset: int
    end_offset: int
    size: int
    epochs: tuple[tuple[int, int], ...]
    broker_id: int
    state: str
    changed_ms: int


@dataclass(slots=True)
class RemoteSegments:
    """The segments by their ids. `unexplained` counts records that could not be read, or that
    change a segment without a record of its own."""

    segments: dict[str, RemoteSegment] = field(default_factory=dict)
    unexplained: int = 0

    def take(self, record_type: int | None, value: Mapping[str, Any] | None) -> None:
        """Take the next record of a partition of the topic; those of a segment are in one."""
        if value is None or record_type not in (_SEGMENT, _UPDATE, _PARTITION):
            self.unexplained += 1
        elif record_type == _SEGMENT:
            self._put(value)
        elif record_type == _UPDATE:
            self._update(value)
        else:
            self._of_partition(value)

    def _put(self, value: Mapping[str, Any]) -> None:
        place, state = value["remoteLogSegmentId"], value["remoteLogSegmentState"]
        if not 0 <= state < len(_STATES):
            self.unexplained += 1
            return
        partition = place["topicIdPartition"]
        self.segments[place["id"]] = RemoteSegment(
            *(partition["name"], partition["partition"], partition["id"], place["id"]),
            *(value["startOffset"], value["endOffset"], value["segmentSizeInBytes"]),
            tuple((each["leaderEpoch"], each["offset"]) for each in value["segmentLeaderEpochs"]),
            *(value["brokerId"], _STATES[state], value["eventTimestampMs"]),
        )

    def _update(self, value: Mapping[str, Any]) -> None:
        segment = self.segments.get(value["remoteLogSegmentId"]["id"])
        state = value["remoteLogSegmentState"]
        if segment is None or not 0 <= state < len(_STATES):
            self.unexplained += 1
            return
        segment.state, segment.broker_id = _STATES[state], value["brokerId"]
        segment.changed_ms = value["eventTimestampMs"]

    def _of_partition(self, value: Mapping[str, Any]) -> None:
        place, state = value["topicIdPartition"], value["remotePartitionDeleteState"]
        if not 0 <= state < len(_PARTITION_STATES):
            self.unexplained += 1
            return
        for segment in self.segments.values():
            is_same = (segment.topic_id, segment.partition) == (place["id"], place["partition"])
            if is_same and segment.state != DELETED:
                segment.state = _PARTITION_STATES[state]
                segment.changed_ms = value["eventTimestampMs"]


def metadata_partition(topic_id: str, partition: int, count: int) -> int:
    """Return which of the topic's `count` partitions has all records about a topic's partition
    (storage/.../RemoteLogMetadataTopicPartitioner.java)."""
    data = base64.urlsafe_b64decode(topic_id + "==")
    most, least = int.from_bytes(data[:8], "big"), int.from_bytes(data[8:], "big")
    found = 1  # as java.util.Objects.hash
    for number in (_hash_of_long(least), _hash_of_long(most), partition):
        found = (31 * found + number) & 0xFFFFFFFF
    return partition_of_key(found.to_bytes(4, "big"), count)


def _hash_of_long(number: int) -> int:
    return (number ^ (number >> 32)) & 0xFFFFFFFF
