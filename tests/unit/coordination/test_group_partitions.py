"""The partition of `__consumer_offsets` that a group is kept in. F323, T41."""

from __future__ import annotations

from kafkalog.coordination.group_partitions import group_partition, partition_count


def test_the_hash_is_javas_over_utf_16_units() -> None:
    # T41. "hello".hashCode() is 99162322 in Java; a letter beyond the first plane is two units:
    # "\U0001d11e" is D834 DD1E, 31 * 0xd834 + 0xdd1e.
    large = 2**31
    assert group_partition("hello", large) == 99162322
    assert group_partition("", large) == 0
    assert group_partition("\U0001d11e", large) == 31 * 0xD834 + 0xDD1E
    # "polygenelubricants".hashCode() is Integer.MIN_VALUE, which has no absolute value in 32 bits.
    assert group_partition("polygenelubricants", large) == 0


def test_how_many_partitions_there_are() -> None:
    assert partition_count([2, 0, 1, 1]) == 3
    assert partition_count([0, 2]) is None
    assert partition_count([]) is None
