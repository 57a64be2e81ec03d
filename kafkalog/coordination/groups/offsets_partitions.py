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


def partition_count(numbers: Collection[int]) -> int | None:
    """Return how many partitions `__consumer_offsets` has by those that are found, None if one is
    missing below the highest, or without any."""
    count = max(numbers, default=-1) + 1
    return count if count and count == len(set(numbers)) else None


def is_confirmed(groups_in_place: int, groups: int) -> bool:
    """Return whether most groups are in the partition that the number of partitions puts them in:
    an input that has only the first partitions of the topic puts them anywhere."""
    return groups_in_place * 2 > groups


def offsets_partitions(
    groups: Collection[GroupKey], partitions: Mapping[str | None, Collection[int]]
) -> dict[GroupKey, int]:
    """Return the partitions that groups belong to, where they are known: `partition_count` of those
    found of each cluster, if it `is_confirmed`."""
    found: dict[GroupKey, int] = {}
    for cluster_id, numbers in partitions.items():
        count = partition_count(numbers)
        if count is None:
            continue
        own = [key for key in groups if key.cluster_id == cluster_id]
        places = {key: offsets_partition_of(key.group_id, count) for key in own}
        in_place = sum(place == key.internal_partition for key, place in places.items())
        if is_confirmed(in_place, len(own)):
            found |= places
    return found
