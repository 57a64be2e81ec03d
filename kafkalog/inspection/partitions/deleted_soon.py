"""What retention deletes of a log within minutes of the start.

Rules: docs/format.md F160 to F168, F941 and F972.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from kafkalog.columns.table_rows import TableRow
from kafkalog.inspection.partitions.retention_plan import batch_totals, retention_rows, with_policy
from kafkalog.storage.cleaning.retention import Reason
from kafkalog.storage.cleaning.retention_facts import TimestampFrom
from kafkalog.storage.log_dir.topic_configs import DEFAULT, RetentionSettings, Setting
from kafkalog.storage.partition_log import PartitionLog

# log.retention.check.interval.ms, after which all logs have been looked at.
SOON_MS = 300_000
_WEEK_MS = 604_800_000


@dataclass(frozen=True, slots=True)
class DeletedSoon:
    """The segments that go, by base offset, and the log start offset after it. `is_expected` is
    False where a broker takes the records for older than they are; with `is_assumed` no file says
    what the limit is."""

    segments: list[int]
    records: int
    size: int
    reason: str
    is_expected: bool
    log_start_offset: int
    is_assumed: bool

    def row(self) -> TableRow:
        """Return the columns of `deleted_soon`."""
        return {
            "segments": self.segments,
            "records": self.records,
            "bytes": self.size,
            "reason": self.reason,
            "is_expected": self.is_expected,
        }


def deleted_soon(
    log: PartitionLog, settings: RetentionSettings, now_ms: int, gone: Collection[int], end: int
) -> DeletedSoon | None:
    """Return what retention deletes; None where that is nothing. `gone` are base offsets of the
    segments that the start itself deletes, `end` is the log end after it."""
    given, settings = settings, _assumed(settings)
    left = [each for each in log.segments if each.base_offset not in gone]
    if not left:
        return None
    end_of_log = batch_totals(log, left[-1])
    here = replace(log, segments=tuple(left))
    rows = [*retention_rows(here, settings, now_ms + SOON_MS, end_of_log)]
    going = [
        (segment, row)
        for segment, row in zip(left, rows, strict=True)
        if row["goes"] and row["reason"] != Reason.LOG_START.value
    ]
    if not going:
        return None
    totals = [batch_totals(log, segment, with_records=True) for segment, _ in going]
    limit_ms = settings.retention_ms.value or -1
    is_early = [
        row["reason"] == Reason.TIME.value and now_ms + SOON_MS - each.latest_ms <= limit_ms
        for each, (_, row) in zip(totals, going, strict=True)
    ]
    last = going[-1][0]
    return DeletedSoon(
        [segment.base_offset or 0 for segment, _ in going],
        sum(each.records or 0 for each in totals),
        sum(segment.size for segment, _ in going),
        _reason([row for _, row in going], given, any(is_early)),
        not any(is_early),
        end if last.next_base_offset is None else last.next_base_offset,
        None in (given.retention_ms.value, given.cleanup_policy.value),
    )


def is_cleaned(log: PartitionLog, settings: RetentionSettings) -> bool:
    """Return whether the cleaner compacts the log, by its settings or Kafka's defaults."""
    policy = with_policy(log, settings).cleanup_policy.value
    return policy is not None and "compact" in policy


def _assumed(settings: RetentionSettings) -> RetentionSettings:
    """Return the settings, with Kafka's defaults where nothing gives them."""
    time, size = settings.retention_ms, settings.retention_bytes
    if time.value is None:
        time = Setting(_WEEK_MS, DEFAULT)
    if size.value is None:
        size = Setting(-1, DEFAULT)
    return replace(settings, retention_ms=time, retention_bytes=size)


def _reason(rows: list[TableRow], given: RetentionSettings, is_early: bool) -> str:
    if is_early:
        if any(row["largest_timestamp_from"] == TimestampFrom.ZEROS.value for row in rows):
            return "its time index ends with zeros: the broker takes the records to be of 1970"
        return "its time index ends with an entry that is older than its records"
    if rows[0]["reason"] == Reason.SIZE.value:
        return f"retention.bytes {rows[0]['retention_bytes']:,}"
    from_default = ", Kafka's default: no file says it" if given.retention_ms.value is None else ""
    return f"retention.ms {rows[0]['retention_ms']:,}{from_default}"
