"""A partition's offsets as `kafka-get-offsets` answers them, a function for each question; the one
for a time is `time_lookup.offset_for_time`. Rules: docs/format.md F146 to F148.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kafkalog.columns.arrays import integers
from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentBatches, SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.segment_reader import SegmentRecords
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.renamed_files import opened_segment


class TimedOffset(NamedTuple):
    """A record's place and time."""

    offset: int
    timestamp_ms: int


class _Latest(NamedTuple):
    timestamp_ms: int
    segment: SegmentFile
    expected_offset: int
    last_offset: int


def earliest_offset(log: PartitionLog) -> int:
    """`--time earliest`: where the log starts, in tiered storage if it reaches back there."""
    local = earliest_local_offset(log)
    key = log.topic_partition
    if key is None or not log.log_dir.is_clean_shutdown:
        return local
    # After a clean stop only a log that goes on in tiered storage has an earlier checkpoint.
    return min(local, log.log_dir.log_starts.get(key, local))


def earliest_local_offset(log: PartitionLog) -> int:
    """`--time earliest-local`: the first offset whose record is in the log directory."""
    return log_bounds(log, EndRule.LOG_END).start_offset


def log_end_offset(log: PartitionLog, *, check_crcs: bool = True) -> int:
    """Return the offset that the next record will get: after the last sound batch, judged by
    headers alone without `check_crcs`."""
    bounds = log_bounds(log, EndRule.LOG_END)
    if not log.segments:
        return bounds.start_offset
    segment = log.segments[-1]
    with opened_segment(segment) as file:
        walk_class = SegmentBatches if check_crcs else SegmentHeaders
        log_end = walk_class(FileWindow(file), SegmentOptions.of(segment)).walk()
    return max(bounds.start_offset, log_end)


def latest_offset(log: PartitionLog) -> int:
    """`--time latest`: the high watermark, up to which consumers can read."""
    end = log_end_offset(log)
    high_watermark = log_bounds(log, EndRule.HIGH_WATERMARK).end_offset
    return end if high_watermark is None else min(high_watermark, end)


def offset_of_max_timestamp(log: PartitionLog) -> TimedOffset | None:
    """`--time max-timestamp`: the first record that has the largest timestamp of all.

    None where the log has no record, and where the first batch of the largest timestamp has no
    record with it, or none of the format that has times.
    """
    latest: _Latest | None = None
    for segment in log.segments:
        with opened_segment(segment) as file:
            latest = _later(file, segment, latest)
    if latest is None:
        return None
    options = replace(
        SegmentOptions.of(latest.segment),
        first_offset=latest.expected_offset,
        end_offset=latest.last_offset + 1,
    )
    with opened_segment(latest.segment) as file:
        offset = _first_at(FileWindow(file), options, latest.timestamp_ms)
    if offset is None or offset >= latest_offset(log):
        return None
    return TimedOffset(offset, latest.timestamp_ms)


def _later(file: InputFile, segment: SegmentFile, latest: _Latest | None) -> _Latest | None:
    """Return the first batch with the largest timestamp, of those before and this segment's."""
    for chunk in SegmentHeaders(FileWindow(file), SegmentOptions.of(segment)).chunks():
        sound = chunk.table[chunk.table[:, column.FAULT] == 0]
        if not len(sound):
            continue
        row = sound[int(sound[:, column.MAX_TIMESTAMP].argmax())]
        if latest is None or row[column.MAX_TIMESTAMP] > latest.timestamp_ms:
            expected, last = row[[column.EXPECTED_OFFSET, column.LAST_OFFSET]].tolist()
            latest = _Latest(int(row[column.MAX_TIMESTAMP]), segment, expected, last)
    return latest


def _first_at(window: FileWindow, options: SegmentOptions, timestamp_ms: int) -> int | None:
    """Return the first requested offset whose record has the timestamp, and a timestamp at all."""
    columns = ("offset", "timestampMs", "timestampType")
    for batch in SegmentRecords(
        window, options, columns, {}, lambda fault: None, with_control_records=True
    ).rows():
        offsets, times, types = (integers(batch.column(name)) for name in columns)
        found = offsets[(times == timestamp_ms) & (types >= 0)]
        if len(found):
            return int(found[0])
    return None
