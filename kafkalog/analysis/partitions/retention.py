"""What a retention plan comes to, from rows of view `retention_plan`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class TopicTotals:
    """Segments and bytes of a topic, those deleted, those undecided, and the partitions whose
    retention a timestamp in the future blocks."""

    topic: str | None
    segments: int = 0
    segments_going: int = 0
    bytes: int = 0
    bytes_freed: int = 0
    bytes_unknown: int = 0
    blocked_partitions: int = 0
    blocked_by_ms: int | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a segment, a row of the view."""
        size = row["bytes"] or 0
        self.segments += 1
        self.bytes += size
        if row["goes"]:
            self.segments_going += 1
            self.bytes_freed += size
        if row["goes"] is None:
            self.bytes_unknown += size
        if row["reason"] == "future_timestamp":
            self.blocked_partitions += 1
            times = (self.blocked_by_ms, row["largest_timestamp_ms"])
            self.blocked_by_ms = max((time for time in times if time is not None), default=None)


def topic_totals(plan: Iterable[Mapping[str, Any]]) -> list[TopicTotals]:
    """Return what each topic comes to, sorted by name."""
    found: dict[str | None, TopicTotals] = {}
    for row in plan:
        topic = row["topic"]
        found.setdefault(topic, TopicTotals(topic)).add(row)
    return sorted(found.values(), key=lambda totals: totals.topic or "")
