"""When retention frees how much, from view `retention_plan`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from kafkalog.report.contents import RetentionSection, Row, as_rows
from kafkalog.views.engine import Options, Views, rows_of_view

_COLUMNS = (
    *("topic", "partition", "bytes", "at_ms", "goes", "reason", "expires_at_ms"),
    *("largest_timestamp_ms", "cleanup_policy", "retention_ms", "retention_bytes"),
)
_LIMITS = ("cleanup_policy", "retention_ms", "retention_bytes")
_DAY_MS = 86_400_000
_WITHIN = (("day", _DAY_MS), ("week", 7 * _DAY_MS), ("month", 30 * _DAY_MS))


def read_retention(
    views: Views, topics: Sequence[str | None], *, at_ms: int, config: Mapping[str, str], most: int
) -> RetentionSection:
    """Return a row per shown topic and one of WHEN: what goes at the time of the plan, within a
    day, a week or a month of it, later, what no time limit reaches, and what is not known;
    segments, bytes, and the policy and limits that all of them have, None where they differ or are
    not known, and next_ms, when the first of them goes. And `most` topics whose retention a
    timestamp in the future blocks."""
    options: Options = {"asOf": at_ms, **config}
    plan = as_rows(rows_of_view(views, "retention_plan", _COLUMNS, options=options))
    found: dict[tuple[str | None, str], list[Row]] = defaultdict(list)
    blocked: dict[str | None, list[Row]] = defaultdict(list)
    for row in plan:
        found[row.topic if row.topic in topics else None, _when(row)].append(row)
        if row.reason == "future_timestamp":
            blocked[row.topic].append(row)
    times = [
        _sums(topic, when, found[topic, when])
        for topic, when in sorted(found, key=lambda key: (key[0] is not None, key[0] or "", key[1]))
    ]
    by_name = sorted(blocked, key=lambda topic: (topic is not None, topic or ""))
    return RetentionSection(times, [_blocked(topic, blocked[topic]) for topic in by_name[:most]])


def _when(row: Row) -> str:
    if row.goes is None:
        return "unknown"
    if row.goes:
        return "now"
    if row.expires_at_ms is None:
        return "stays"
    left_ms = row.expires_at_ms - row.at_ms
    return next((name for name, limit_ms in _WITHIN if left_ms <= limit_ms), "later")


def _sums(topic: str | None, when: str, segments: Sequence[Row]) -> Row:
    limits: dict[str, Any] = {}
    for name in _LIMITS:
        values = {row[name] for row in segments} - {None}
        limits[name] = values.pop() if len(values) == 1 else None
    times = [row.expires_at_ms for row in segments if row.expires_at_ms is not None]
    return Row(
        shown_topic=topic,
        when=when,
        segments=len(segments),
        bytes=sum(row.bytes for row in segments),
        next_ms=min(times, default=None),
        **limits,
    )


def _blocked(topic: str | None, segments: Sequence[Row]) -> Row:
    times = [row.largest_timestamp_ms for row in segments if row.largest_timestamp_ms is not None]
    return Row(topic=topic, partitions=len(segments), timestamp_ms=max(times, default=None))
