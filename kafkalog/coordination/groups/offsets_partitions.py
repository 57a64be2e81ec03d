"""Which partition of `__consumer_offsets` a group belongs to. Rule: docs/format.md F323."""

from __future__ import annotations

from collections.abc import Collection

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
