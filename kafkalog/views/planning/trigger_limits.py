"""How much of what is new one micro-batch of a stream takes. Rules: docs/ingest.md F525."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)


def shares(limit: int, sizes: Mapping[_Key, int]) -> dict[_Key, int]:
    """Return the part of `limit` that each gets: in proportion to its size, rounded down, but 1 at
    least of what is not empty, and never more than there is.

    The rule of Spark's Kafka source, so that small partitions are not left waiting.
    """
    total = sum(size for size in sizes.values() if size > 0)
    if total <= limit:
        return dict(sizes)
    return {
        key: min(size, max(limit * size // total, 1)) if size > 0 else size
        for key, size in sizes.items()
    }
