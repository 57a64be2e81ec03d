"""The hash by which Kafka's producers choose a partition. Rule: docs/testing.md F610."""

from __future__ import annotations

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 of bytes with Kafka's seed, as an unsigned number."""
    value = _SEED ^ len(data)
    whole = len(data) & ~3
    for place in range(0, whole, 4):
        word = int.from_bytes(data[place : place + 4], "little") * _FACTOR & _MASK
        word = (word ^ word >> 24) * _FACTOR & _MASK
        value = (value * _FACTOR & _MASK) ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 13) * _FACTOR & _MASK
    return value ^ value >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition to which a producer with Kafka's own partitioner sends a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
