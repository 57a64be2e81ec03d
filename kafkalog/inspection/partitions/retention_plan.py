"""What retention would do to the segments of a log: view `retention_plan`,
schemas/tables/retention_plan.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.table_rows import TableRow
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.logs.missing_offsets import was_cleaned
from kafkalog.storage.cleaning.retention import (
    RetentionLog,
    RetentionSegment,
    expiries_ms,
    plan_retention,
)
from kafkalog.storage.cleaning.retention_facts import (
    LargestTimestamp,
    TimestampFrom,
    largest_timestamp,
    rebuilt_segments,
)
from kafkalog.storage.files.files import modified_ms
from kafkalog.storage.log_dir.topic_configs import (
    ASSUMED,
    COMPACTED_TOPICS,
    UNKNOWN,
    RetentionSettings,
    Setting,
)
from kafkalog.storage.names import BROKERS_TOPICS, CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.renamed_files import opened_segment


def retention_rows(
    log: PartitionLog, settings: RetentionSettings, now_ms: int, last: BatchTotals | None = None
) -> Iterator[TableRow]:
    """Yield a row for each segment of the log, in their order. `last` is what its last segment
    comes to, if that is known."""
    if not log.segments:
        return
    settings = with_policy(log, settings)
    last = last or batch_totals(log, log.segments[-1])
    log_end, times = last.next_offset, _largest_timestamps(log, last.latest_ms)
    start = log_bounds(log, EndRule.LOG_END).start_offset
    high_watermark = log_bounds(log, EndRule.HIGH_WATERMARK).end_offset
    facts = RetentionLog(
        start, log_end, log_end if high_watermark is None else min(high_watermark, log_end)
    )
    segments = [
        RetentionSegment(segment.base_offset or 0, segment.size, time.timestamp_ms)
        for segment, time in zip(log.segments, times, strict=True)
    ]
    constants = {
        "at_ms": now_ms,
        **_settings_columns(settings),
        "log_start_offset": start,
        "log_end_offset": log_end,
        "high_watermark": facts.high_watermark,
        "high_watermark_from": "log_end" if high_watermark is None else "checkpoint",
    }
    verdicts = plan_retention(segments, facts, settings.limits, now_ms)
    expiries = expiries_ms(segments, settings.limits)
    for segment, time, verdict, expiry in zip(log.segments, times, verdicts, expiries, strict=True):
        yield {
            **constants,
            "file": segment.path,
            "segment_base_offset": segment.base_offset,
            "is_last_segment": segment.next_base_offset is None,
            "bytes": segment.size,
            "largest_timestamp_ms": time.timestamp_ms,
            "largest_timestamp_from": time.source.value,
            "goes": verdict.goes,
            "reason": verdict.reason.value,
            "expires_at_ms": expiry,
        }


def with_policy(log: PartitionLog, settings: RetentionSettings) -> RetentionSettings:
    """Return the settings with a `cleanup.policy` where nothing gives the topic's: compact of a log
    that the cleaner has been in, otherwise the broker's or Kafka's default, which is delete. Rule:
    docs/format.md F1351."""
    policy = settings.cleanup_policy
    if policy.source not in (UNKNOWN, ASSUMED):
        return settings
    is_kept = log.topic in COMPACTED_TOPICS or was_cleaned(log)
    if not is_kept and log.topic in (*BROKERS_TOPICS, CLUSTER_METADATA):
        return settings
    words = frozenset(("compact",)) if is_kept else policy.value or frozenset(("delete",))
    return replace(settings, cleanup_policy=Setting(words, ASSUMED))


def _largest_timestamps(log: PartitionLog, latest_ms: int) -> list[LargestTimestamp]:
    """Return the largest timestamps of the segments, as a broker has them when it runs; `latest_ms`
    is that of the last segment's batches."""
    times = [largest_timestamp(segment) for segment in log.segments]
    last = len(times) - 1
    for number in rebuilt_segments(log):
        # An unclean stop leaves the last one's index without its last entry.
        if number == last or times[number].source is not TimestampFrom.TIME_INDEX:
            segment = log.segments[number]
            found = latest_ms if number == last else batch_totals(log, segment).latest_ms
            if found != NO_VALUE:
                times[number] = LargestTimestamp(found, TimestampFrom.BATCHES)
            elif times[number].source is TimestampFrom.ZEROS:
                # The index that a broker recreates of no batch has no entry.
                written_ms = modified_ms(segment.path)
                times[number] = LargestTimestamp(written_ms, TimestampFrom.FILE)
    return times


def _settings_columns(settings: RetentionSettings) -> TableRow:
    policy = settings.cleanup_policy
    return {
        "cleanup_policy": None if policy.value is None else ",".join(sorted(policy.value)),
        "cleanup_policy_from": policy.source,
        "retention_ms": settings.retention_ms.value,
        "retention_ms_from": settings.retention_ms.source,
        "retention_bytes": settings.retention_bytes.value,
        "retention_bytes_from": settings.retention_bytes.source,
        "is_tiered": settings.is_tiered,
    }


@dataclass(frozen=True, slots=True)
class BatchTotals:
    """What the sound batches of a segment come to: the offset after the last one, the largest
    timestamp, -1 without one, and the records that consumers get, None if they are not counted."""

    next_offset: int
    latest_ms: int
    records: int | None = None


def batch_totals(
    log: PartitionLog, segment: SegmentFile, *, with_records: bool = False
) -> BatchTotals:
    """Return what the headers of a segment's batches say, or what was found in it before, which
    does not tell control records from others."""
    options = SegmentOptions.of(segment, check_crcs=False)
    latest_ms, records = NO_VALUE, 0
    with opened_segment(segment) as file:
        known = None if with_records else log.known_sound(segment, file.size)
        if known is not None:
            latest = known.max_timestamp_ms
            return BatchTotals(known.last_offset + 1, NO_VALUE if latest is None else latest)
        headers = SegmentHeaders(FileWindow(file), options)
        for chunk in headers.chunks():
            sound = chunk.table[chunk.table[:, column.FAULT] == 0]
            if len(sound):
                latest_ms = max(latest_ms, int(sound[:, column.MAX_TIMESTAMP].max()))
                data = sound[~column.is_control(sound)]
                records += int(column.record_counts(data).sum())
        return BatchTotals(headers.next_offset, latest_ms, records)
