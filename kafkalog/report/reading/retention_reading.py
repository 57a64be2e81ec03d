"""When retention frees how much, from view `retention_plan`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from kafkalog.questions.retention import RetentionRequest, is_past_time, missing_settings, retention
from kafkalog.report.contents import RetentionSection, Row, as_rows
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import Views

_LIMITS = ("cleanup_policy", "retention_ms", "retention_bytes")
_DAY_MS = 86_400_000
_WITHIN = (("day", _DAY_MS), ("week", 7 * _DAY_MS), ("month", 30 * _DAY_MS))


def read_retention(
    views: Views,
    topics: Sequence[str | None],
    known: Sequence[PartitionLog] | None,
    *,
    at_ms: int,
    config: Mapping[str, str],
    most: int,
) -> RetentionSection:
    """Return a row per shown topic and one of WHEN: what goes at the time of the plan, within a
    day, a week or a month of it, later, what no time limit reaches, and what is not known;
    segments, bytes, and the policy and limits that all of them have, None where they differ or are
    not known, next_ms, when the first of them goes, and the names of settings that are missing.
    Where some are, the limit in time that is known says when. And `most` topics each whose
    retention a timestamp in the future blocks, and which have segments that are taken for 1970.
    `known` are the logs with what is known of their files."""
    plan = retention(views, RetentionRequest(at_ms, config, known))
    found: dict[tuple[str | None, str], list[Row]] = defaultdict(list)
    for row in as_rows(plan.rows):
        found[row.topic if row.topic in topics else None, _when(row)].append(row)
    times = [
        _sums(topic, when, found[topic, when])
        for topic, when in sorted(found, key=lambda key: (key[0] is not None, key[0] or "", key[1]))
    ]
    blocked = [each for each in plan.topics if each.blocked_partitions][:most]
    padded = [each for each in plan.topics if each.padded_segments][:most]
    return RetentionSection(
        times,
        [
            Row(
                topic=each.topic,
                partitions=each.blocked_partitions,
                timestamp_ms=each.blocked_by_ms,
            )
            for each in blocked
        ],
        [Row(topic=each.topic, segments=each.padded_segments) for each in padded],
    )


def _when(row: Row) -> str:
    if row.goes or (row.goes is None and is_past_time(vars(row))):
        return "now"
    if row.expires_at_ms is None:
        return "unknown" if row.goes is None else "stays"
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
        missing=sorted(set().union(*(missing_settings(vars(row)) for row in segments))),
        **limits,
    )
