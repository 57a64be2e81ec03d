"""Which partition of `__consumer_offsets` a group belongs to. Rule: docs/format.md F323."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafkalog.coordination.groups.group_records import GroupKey
from kafkalog.wire.java_strings import java_string_hash

_LEAST_HASH = -(1 << 31)


def offsets_partition_of(group_id: str, partitions: int) -> int:
    """Return the partition that a group belongs to, given the number of partitions."""
    code = java_string_hash(group_id)
    # The least number has no absolute value in Java; brokers take 0.
    return 0 if code == _LEAST_HASH else abs(code) % partitions


def offsets_partitions(
    groups: Collection[GroupKey], partitions: Mapping[str | None, Collection[int]]
) -> dict[GroupKey, int]:
    """Return the partitions that groups belong to, where they are known.

    `partitions` are those found of each cluster. The highest of them shows how many there are, if
    none below is missing and most groups are in the partition that this number puts them in: an
    input that has only the first partitions of the topic puts them anywhere.
    """
    found: dict[GroupKey, int] = {}
    for cluster_id, numbers in partitions.items():
        count = max(numbers, default=-1) + 1
        if not count or count != len(set(numbers)):
            continue
        own = [key for key in groups if key.cluster_id == cluster_id]
        places = {key: offsets_partition_of(key.group_id, count) for key in own}
        if sum(place == key.internal_partition for key, place in places.items()) * 2 > len(own):
            found |= places
    return found
