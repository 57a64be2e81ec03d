"""What a retention plan comes to, from rows of view `retention_plan`.

Rules: docs/format.md F163, F168 and F941.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkalog.storage.cleaning.retention_facts import TimestampFrom
from kafkalog.storage.log_dir.topic_configs import UNKNOWN

# What totals take of the view.
TOTALS_COLUMNS = (
    *("topic", "bytes", "at_ms", "goes", "reason", "expires_at_ms", "largest_timestamp_ms"),
    *("largest_timestamp_from", "cleanup_policy_from", "retention_ms_from"),
    "retention_bytes_from",
)
_SETTINGS = {
    "cleanup_policy_from": "cleanup.policy",
    "retention_ms_from": "retention.ms",
    "retention_bytes_from": "retention.bytes",
}


@dataclass
class TopicTotals:
    """Segments and bytes of a topic, those deleted, and those undecided: which settings would
    decide, and how many of the bytes are past the limit in time that is known. The partitions whose
    retention a timestamp in the future blocks, up to which time; and segments that a broker takes
    to be of 1970, because zeros are at the end of their time index."""

    topic: str | None
    segments: int = 0
    segments_going: int = 0
    bytes: int = 0
    bytes_freed: int = 0
    bytes_unknown: int = 0
    bytes_past_time: int = 0
    blocked_partitions: int = 0
    blocked_by_ms: int | None = None
    padded_segments: int = 0
    missing_settings: set[str] = field(default_factory=set)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a segment, a row of the view."""
        size = row["bytes"] or 0
        self.segments += 1
        self.bytes += size
        self.padded_segments += row["largest_timestamp_from"] == TimestampFrom.ZEROS.value
        if row["goes"]:
            self.segments_going += 1
            self.bytes_freed += size
        if row["goes"] is None:
            self.bytes_unknown += size
            self.bytes_past_time += size * is_past_time(row)
            self.missing_settings |= missing_settings(row)
        if row["reason"] == "future_timestamp":
            self.blocked_partitions += 1
            times = (self.blocked_by_ms, row["largest_timestamp_ms"])
            self.blocked_by_ms = max((time for time in times if time is not None), default=None)


def is_past_time(row: Mapping[str, Any]) -> bool:
    """Return whether a segment is past the limit in time that is known."""
    return row["expires_at_ms"] is not None and row["expires_at_ms"] <= row["at_ms"]


def missing_settings(row: Mapping[str, Any]) -> set[str]:
    """Return the names of the settings of a segment's topic that nothing gives."""
    return {name for column, name in _SETTINGS.items() if row[column] == UNKNOWN}


def topic_totals(plan: Iterable[Mapping[str, Any]]) -> list[TopicTotals]:
    """Return what each topic comes to, sorted by name."""
    found: dict[str | None, TopicTotals] = {}
    for row in plan:
        topic = row["topic"]
        found.setdefault(topic, TopicTotals(topic)).add(row)
    return sorted(found.values(), key=lambda totals: (totals.topic is not None, totals.topic or ""))
