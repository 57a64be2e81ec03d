"""What fills `__cluster_metadata`: its records by type, broker and hour.

Rule: docs/format.md F1249.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.coordination.metadata.image import Moment
from kafkalog.errors import CorruptDataError
from kafkalog.inspection.metadata.metadata_log import MetadataLog
from kafkalog.words import counted, first_names, time_text

BY_RECORD, BY_HOUR = "record", "record-hour"
COLUMNS: Mapping[str, tuple[str, ...]] = {
    BY_RECORD: (
        *("record_name", "broker_id", "records", "bytes", "share", "first_timestamp_ms"),
        *("last_timestamp_ms", "busiest_hour_ms", "busiest_hour_records"),
    ),
    BY_HOUR: ("hour_ms", "record_name", "broker_id", "records", "bytes"),
}
_HOUR_MS = 3_600_000
# The fields that name the broker that a record is about.
_BROKER_FIELDS = ("brokerId", "controllerId")
_FENCING = ("FenceBrokerRecord", "UnfenceBrokerRecord")
_UNREADABLE = "?"
_MOST_NAMES = 3

_Kind = tuple[str, int | None]


@dataclass
class RecordUsage:
    """The records of a copy up to a moment, by type and broker, and in each hour; the offsets from
    the first to the last; and the damage at which reading ended."""

    start_offset: int
    end_offset: int = 0
    hours: dict[tuple[int, _Kind], tuple[int, float]] = field(default_factory=dict)
    times: dict[_Kind, tuple[int, int]] = field(default_factory=dict)
    damage: CorruptDataError | None = None

    def rows(self, by: str) -> list[dict[str, Any]]:
        """Return the rows: BY_RECORD most bytes first, BY_HOUR by time."""
        return [*(self._hour_rows() if by == BY_HOUR else self._record_rows())]

    def words(self) -> list[str]:
        """Return lines: how much was read, and which types have most of it."""
        rows = self.rows(BY_RECORD)
        records = sum(row["records"] for row in rows)
        names = [f"{row['record_name']} {row['share']:.0%}" for row in rows]
        found = [
            f"offsets {self.start_offset} to {self.end_offset - 1}: {counted(records, 'record')} "
            f"by bytes: {first_names(names, _MOST_NAMES)}"
        ]
        busiest = max(self._by_hour().items(), key=lambda each: each[1], default=None)
        if busiest is not None:
            hour, count = busiest
            found.append(
                f"most came in the hour from {time_text(hour)} on: {counted(count, 'record')}"
            )
        if self.damage is not None:
            found.append(f"{self.damage}: records from there on are not read")
        return found

    def _by_hour(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for (hour, _), (count, _) in self.hours.items():
            found[hour] = found.get(hour, 0) + count
        return found

    def _hour_rows(self) -> Iterator[dict[str, Any]]:
        in_order = sorted(self.hours.items(), key=lambda each: (each[0][0], -each[1][1]))
        for (hour, (name, broker_id)), (count, size) in in_order:
            yield {
                "hour_ms": hour,
                "record_name": name,
                "broker_id": broker_id,
                "records": count,
                "bytes": round(size),
            }

    def _record_rows(self) -> Iterator[dict[str, Any]]:
        by_kind: dict[_Kind, list[tuple[int, int, float]]] = {}
        for (hour, kind), (count, size) in self.hours.items():
            by_kind.setdefault(kind, []).append((count, hour, size))
        whole = sum(size for _, size in self.hours.values())
        sizes = {kind: sum(size for _, _, size in parts) for kind, parts in by_kind.items()}
        for kind in sorted(by_kind, key=lambda kind: (-sizes[kind], str(kind))):
            parts = by_kind[kind]
            # Of hours that have as many the first counts.
            most, negative_hour = max((count, -hour) for count, hour, _ in parts)
            yield {
                "record_name": kind[0],
                "broker_id": kind[1],
                "records": sum(count for count, _, _ in parts),
                "bytes": round(sizes[kind]),
                "share": round(sizes[kind] / whole, 4),
                "first_timestamp_ms": self.times[kind][0],
                "last_timestamp_ms": self.times[kind][1],
                "busiest_hour_ms": -negative_hour,
                "busiest_hour_records": most,
            }


def record_usage(log: MetadataLog, until: Moment) -> RecordUsage:
    """Return what fills a copy up to a moment, as far as it can be read."""
    usage = RecordUsage(log.start_offset, log.start_offset)
    try:
        for batch in log.batches(log.start_offset):
            entries = [*batch.entries()]
            part = len(batch.data) / max(len(entries), 1)
            for entry in entries:
                if not until.includes(entry.offset, entry.timestamp_ms):
                    return usage
                usage.end_offset = entry.offset + 1
                kind = entry.name or _UNREADABLE, _broker_of(entry.name, entry.value)
                place = entry.timestamp_ms // _HOUR_MS * _HOUR_MS, kind
                count, size = usage.hours.get(place, (0, 0.0))
                usage.hours[place] = count + 1, size + part
                first, last = usage.times.get(kind, (entry.timestamp_ms, entry.timestamp_ms))
                usage.times[kind] = min(first, entry.timestamp_ms), max(last, entry.timestamp_ms)
    except CorruptDataError as error:
        usage.damage = error
    return usage


def _broker_of(name: str | None, value: Mapping[str, Any] | None) -> int | None:
    """Return the broker or controller that a record is about, if it names one."""
    if value is None:
        return None
    names: Sequence[str] = ("id",) if name in _FENCING else _BROKER_FIELDS
    return next((value[each] for each in names if isinstance(value.get(each), int)), None)
