"""Which segments does a broker's retention delete, when, and why?

Rules: docs/format.md F160 to F168 and F941.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.storage.cleaning.retention_facts import TimestampFrom
from kafkalog.storage.log_dir.topic_configs import ASSUMED, UNKNOWN
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Options, Rows, Views
from kafkalog.words import counted, first_names, size_text

TABLE = "retention_plan"
_DAY_MS = 24 * 3_600_000
_WEEK_MS = 7 * _DAY_MS
POLICY = "cleanup.policy"
_SETTINGS = {
    "cleanup_policy_from": POLICY,
    "retention_ms_from": "retention.ms",
    "retention_bytes_from": "retention.bytes",
}


@dataclass(frozen=True, slots=True)
class RetentionRequest:
    """The time of the plan; options with the cluster's settings; and the logs that are planned for,
    where these are not all."""

    at_ms: int
    config: Mapping[str, str] = field(default_factory=dict)
    logs: Sequence[PartitionLog] | None = None


@dataclass
class TopicTotals:
    """Segments and bytes of a topic, those deleted, those that go within a day and a week from the
    time of the plan on if nothing is written, and those undecided; the settings that nothing gives;
    and whether its policy is then assumed to have delete. The partitions whose
    retention a timestamp in the future blocks, up to which time; and segments that a broker takes
    to be of 1970, because zeros are at the end of their time index."""

    topic: str | None
    segments: int = 0
    segments_going: int = 0
    bytes: int = 0
    bytes_freed: int = 0
    bytes_within_day: int = 0
    bytes_within_week: int = 0
    bytes_unknown: int = 0
    blocked_partitions: int = 0
    blocked_by_ms: int | None = None
    padded_segments: int = 0
    missing_settings: set[str] = field(default_factory=set)

    @property
    def missing(self) -> str | None:
        """The settings that nothing gives."""
        return _joined(self.missing_settings)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a segment, a row of table `retention_plan`."""
        size = row["bytes"] or 0
        self.segments += 1
        self.bytes += size
        self.padded_segments += row["largest_timestamp_from"] == TimestampFrom.ZEROS.value
        if row["goes"]:
            self.segments_going += 1
            self.bytes_freed += size
        self.bytes_within_day += size * goes_within(row, _DAY_MS)
        self.bytes_within_week += size * goes_within(row, _WEEK_MS)
        if row["goes"] is None:
            self.bytes_unknown += size
        missing = missing_settings(row)
        self.missing_settings |= missing if row["goes"] is None else missing & {POLICY}
        if row["reason"] == "future_timestamp":
            self.blocked_partitions += 1
            times = (self.blocked_by_ms, row["largest_timestamp_ms"])
            self.blocked_by_ms = max((time for time in times if time is not None), default=None)


def is_past_time(row: Mapping[str, Any]) -> bool:
    """Return whether a segment is past the limit in time that is known."""
    return row["expires_at_ms"] is not None and row["expires_at_ms"] <= row["at_ms"]


def goes_within(row: Mapping[str, Any], length_ms: int) -> bool:
    """Return whether a segment goes at the time of the plan, or by time within so long after it."""
    expires_ms = row["expires_at_ms"]
    return bool(row["goes"]) or (expires_ms is not None and expires_ms <= row["at_ms"] + length_ms)


def missing_settings(row: Mapping[str, Any]) -> set[str]:
    """Return the names of the settings of a segment's topic that nothing gives."""
    return {name for column, name in _SETTINGS.items() if row[column] in (UNKNOWN, ASSUMED)}


def assumed_policy_words(topics: Iterable[TopicTotals], *, has_metadata: bool) -> Iterator[str]:
    """Yield a line about the topics whose `cleanup.policy` nothing gives, and what would give it.
    Rule: F1351."""
    named = [
        topic.topic or "?"
        for topic in topics
        if POLICY in topic.missing_settings and topic.topic != CLUSTER_METADATA
    ]
    if named:
        gives = (
            "--server-properties gives the broker's"
            if has_metadata
            else "--topic-config, --zookeeper or a log directory with __cluster_metadata gives it"
        )
        yield (
            f"no file says the cleanup.policy of {first_names(named, 5)}: the broker's default is "
            "assumed (Kafka's is delete), and compact for what the cleaner has cleaned; " + gives
        )


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """Rows of table `retention_plan`, and what they come to by topic, sorted by name."""

    rows: Rows
    topics: Sequence[TopicTotals]
    has_metadata: bool

    @property
    def has_findings(self) -> bool:
        """Whether a timestamp in the future blocks retention, or zeros in a time index trigger
        it."""
        return any(row.blocked_partitions or row.padded_segments for row in self.topics)

    def most_first(self) -> list[TopicTotals]:
        """Return the totals of topics, those that free most first."""
        return sorted(self.topics, key=lambda topic: topic.bytes_freed, reverse=True)

    def words(self) -> list[str]:
        """Return lines: what is deleted, which topics are blocked, and whose limits are not
        known."""
        return [*self._clauses()]

    def _clauses(self) -> Iterator[str]:
        topics = self.topics
        going = sum(row.segments_going for row in topics)
        freed = sum(row.bytes_freed for row in topics)
        whole = counted(sum(row.segments for row in topics), "segment")
        yield f"{going:,} of {whole} would go, {counted(freed, 'byte')} freed"
        day, week = (
            sum(getattr(row, f"bytes_within_{name}") for row in topics) for name in ("day", "week")
        )
        if week:
            yield (
                f"by time, if nothing more is written: {size_text(day)} within a day, "
                f"{size_text(week)} within a week"
            )
        yield from assumed_policy_words(topics, has_metadata=self.has_metadata)
        blocked = [row.topic or "?" for row in topics if row.blocked_partitions]
        if blocked:
            yield f"blocked by a timestamp in the future: {', '.join(blocked)}"
        padded = [row.topic or "?" for row in topics if row.padded_segments]
        if padded:
            yield (
                "taken for 1970, because zeros are at the end of time indexes: segments of "
                f"{', '.join(padded)}: remove their .index and .timeindex before the broker "
                "starts, and it recreates them"
            )
        # Rule: docs/format.md F1293.
        if any(row.topic == CLUSTER_METADATA for row in topics):
            yield (
                f"not judged: {CLUSTER_METADATA}: controllers and brokers delete of it what a "
                "snapshot has, by metadata.max.retention.ms and metadata.max.retention.bytes"
            )
        unknown = [row for row in topics if row.bytes_unknown and row.topic != CLUSTER_METADATA]
        if unknown:
            named = ", ".join(
                f"{row.topic or '?'} ({_joined(row.missing_settings - {POLICY}) or 'see reason'})"
                for row in unknown
            )
            give = "--server-properties or --topic-config" + (
                " gives what topics do not set themselves"
                if self.has_metadata
                else ", --zookeeper or a log directory with __cluster_metadata gives them"
            )
            yield f"not known for want of settings: {named}; {give}"


def retention(views: Views, settings: RetentionRequest) -> RetentionPlan:
    """Return what retention deletes of each segment."""
    options: Options = {"asOf": settings.at_ms, **settings.config}
    (rows,) = views.rows(AskedView(TABLE, options=options, logs=settings.logs))
    has_metadata = any(log.topic == CLUSTER_METADATA for log in views.logs)
    return RetentionPlan(rows, topic_totals(rows), has_metadata)


def _joined(names: Iterable[str]) -> str | None:
    return ", ".join(sorted(names)) or None


def topic_totals(plan: Iterable[Mapping[str, Any]]) -> list[TopicTotals]:
    """Return what each topic comes to, sorted by name."""
    found: dict[str | None, TopicTotals] = {}
    for row in plan:
        topic = row["topic"]
        found.setdefault(topic, TopicTotals(topic)).add(row)
    return sorted(found.values(), key=lambda totals: (totals.topic is not None, totals.topic or ""))
