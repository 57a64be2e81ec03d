"""Where share groups read, from records of `__share_group_state`. Rule: docs/format.md F780."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_UNKNOWN = -1
_SNAPSHOT, _UPDATE = 0, 1


class SharePartition(NamedTuple):
    """A partition of a share group; the topic's id as Kafka prints it."""

    cluster_id: str | None
    group_id: str
    topic_id: str
    partition: int


class ShareState(NamedTuple):
    """Where a share group is in a partition. `start_offset` is None until the group has begun;
    `delivery_complete` counts the offsets from there on that need no delivery any more, None where
    the broker does not write it (before Kafka 4.2). `written_ms` is the time of the last record."""

    start_offset: int | None
    delivery_complete: int | None
    written_ms: int | None


class ShareStates:
    """Takes the records of the partitions of `__share_group_state`, those of one partition in the
    order of their offsets, and keeps the last state of each share partition."""

    def __init__(self) -> None:
        self.states: dict[SharePartition, ShareState] = {}

    def take(
        self,
        cluster_id: str | None,
        record_type: int,
        key: Mapping[str, Any],
        value: Mapping[str, Any] | None,
        written_ms: int | None,
    ) -> None:
        """Take a record, its value None for a tombstone, and its timestamp."""
        if record_type not in (_SNAPSHOT, _UPDATE):
            return
        place = SharePartition(cluster_id, key["groupId"], key["topicId"], key["partition"])
        if value is None:
            self.states.pop(place, None)
            return
        start, complete = (_known(value[name]) for name in ("startOffset", "deliveryCompleteCount"))
        known = self.states.get(place) if record_type == _UPDATE else None
        if known is not None:
            # An update leaves out what has not changed.
            start = known.start_offset if start is None else start
            complete = known.delivery_complete if complete is None else complete
        self.states[place] = ShareState(start, complete, written_ms)


def _known(number: int) -> int | None:
    return None if number == _UNKNOWN else number
