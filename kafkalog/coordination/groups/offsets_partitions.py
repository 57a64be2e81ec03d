"""Which partition of `__consumer_offsets` a group belongs to, for one group at a time.

Rule: docs/format.md F323. `kafkalog.analysis.lag.offsets_partitions` does the same for a column.
"""

from __future__ import annotations

from kafkalog.wire.java_strings import java_string_hash

_LEAST_HASH = -(1 << 31)


def offsets_partition_of(group_id: str, partitions: int) -> int:
    """The partition that a group belongs to, of so many."""
    code = java_string_hash(group_id)
    # The least number has no absolute value in Java; brokers take 0.
    return 0 if code == _LEAST_HASH else abs(code) % partitions
