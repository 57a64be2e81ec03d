"""In which partition of `__consumer_offsets` a group is kept. Rule: docs/format.md F323."""

from __future__ import annotations

from collections.abc import Collection


def group_partition(group_id: str, partition_count: int) -> int:
    """The partition whose leader is the group's coordinator, of `partition_count` that there are.

    From the hash that Java has for strings, over UTF-16 units: a signed number of 32 bits, of which
    the absolute value counts, and 0 for the one that has none (-2**31).
    """
    data = group_id.encode("utf-16-be", "surrogatepass")
    code = 0
    for position in range(0, len(data), 2):
        code = (31 * code + int.from_bytes(data[position : position + 2])) & 0xFFFFFFFF
    return min(code, 2**32 - code) % 2**31 % partition_count


def partition_count(partitions: Collection[int]) -> int | None:
    """How many partitions a topic has, by those that were found: None where some before the last
    one are missing. Whether there are more behind it cannot be told."""
    found = set(partitions)
    return len(found) if found and found == set(range(max(found) + 1)) else None
