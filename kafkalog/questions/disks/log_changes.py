"""What came, went, and was written again in a partition's log between two copies of it.

Only headers of batches are read. Rules: docs/command-line.md F1150 to F1153.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.inspection.logs.replica_facts import continuation, live_replicas, replica_sets
from kafkalog.inspection.partitions.segments import HeaderAccount
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog, bytes_in, topic_id
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.storage.reading.renamed_files import note_deleted_segment, opened_segment

TABLE = "log_changes"


class LogChange(Enum):
    """What happened to a log, the first that applies."""

    NEW = "new"
    GONE = "gone"
    MADE_AGAIN = "made_again"
    REWRITTEN = "rewritten"
    TRUNCATED = "truncated"
    LOST_RECORDS = "lost_records"
    GROWN = "grown"
    SHORTENED = "shortened"
    SAME = "same"


# The later copy does not continue the earlier one.
NOT_CONTINUED = frozenset(
    (LogChange.MADE_AGAIN, LogChange.REWRITTEN, LogChange.TRUNCATED, LogChange.LOST_RECORDS)
)


_CONTINUED = frozenset((LogChange.GROWN, LogChange.SHORTENED, LogChange.SAME))


class LogPair(NamedTuple):
    """A partition's log in the earlier copy and in the later one, None where it is not there, and
    how many replicas of it each has."""

    before: PartitionLog | None
    after: PartitionLog | None
    replicas_before: int
    replicas: int

    @property
    def size(self) -> int:
        """The bytes of both logs."""
        logs = (log for log in (self.before, self.after) if log is not None)
        return bytes_in(logs)


def log_pairs(before: Sequence[PartitionLog], after: Sequence[PartitionLog]) -> list[LogPair]:
    """Return the logs of both copies by partition: the best replica of the later copy, and of the
    earlier one that of the same broker, or else its best. Rule: F1150."""
    earlier, later = _best_first(before), _best_first(after)
    return [
        _pair(earlier.get(place, []), later.get(place, [])) for place in sorted({*earlier, *later})
    ]


def _best_first(logs: Sequence[PartitionLog]) -> dict[TopicPartition, list[PartitionLog]]:
    found: dict[TopicPartition, list[PartitionLog]] = {}
    for replicas in live_replicas(logs):
        place = replicas[0].topic_partition
        if place is not None:
            is_alone = len(replicas) == 1 or any(map(is_oldest_layout, replicas))
            found[place] = replicas if is_alone else list(replica_sets(replicas)[0].logs)
    return found


def _pair(before: Sequence[PartitionLog], after: Sequence[PartitionLog]) -> LogPair:
    later = after[0] if after else None
    same = [log for log in before if later and log.log_dir.broker_id == later.log_dir.broker_id]
    earlier = next(iter((*same, *before)), None)
    return LogPair(earlier, later, len(before), len(after))


@dataclass
class _Held:
    """What headers say of a log: bytes, records that are not control records, those of them from an
    offset on, both None where old compressed messages hide them, the end, and bytes outside sound
    batches."""

    start_offset: int
    end_offset: int
    size: int
    records: int | None = 0
    records_from: int | None = 0
    unread_bytes: int = 0


def log_change(pair: LogPair) -> dict[str, Any]:
    """Return a row of table `log_changes`."""
    before, after = pair.before, pair.after
    ids = [None if log is None else topic_id(log) for log in (before, after)]
    is_other_topic = None not in ids and ids[0] != ids[1]
    continued = None
    if before is not None and after is not None and not is_other_topic:
        continued = continuation(before, after) if _has_batches(before, after) else None
    starts_at = 0 if after is None else log_bounds(after, EndRule.LOG_END).start_offset
    held_before = None if before is None else _held(before, starts_at)
    end_before = 0 if held_before is None else held_before.end_offset
    cut = end_before if continued is None else continued.until_offset
    held = None if after is None else _held(after, 0 if is_other_topic else cut)
    records_before = 0 if held_before is None else held_before.records
    records = 0 if held is None else held.records
    added = 0 if held is None else held.records_from
    removed = None
    if records_before is not None and records is not None and added is not None:
        removed = max(0, records_before - (records - added))
    if continued is not None and continued.is_rewritten:
        change = LogChange.REWRITTEN
    elif is_other_topic:
        change = LogChange.MADE_AGAIN
    else:
        change = _change(held_before, held, cut)
    if change in _CONTINUED and _has_lost_records(pair, held_before, removed):
        change = LogChange.LOST_RECORDS
    named = after or before
    return {
        "cluster_id": None if named is None else named.log_dir.cluster_id,
        "topic": None if named is None else named.topic,
        "partition": None if named is None else named.partition,
        "change": change.value,
        "continues_until": cut if change in (LogChange.REWRITTEN, LogChange.TRUNCATED) else None,
        "records_added": added,
        "records_removed": removed,
        "bytes_before": None if held_before is None else held_before.size,
        "bytes": None if held is None else held.size,
        "records_before": None if held_before is None else held_before.records,
        "records": None if held is None else held.records,
        "start_offset_before": None if held_before is None else held_before.start_offset,
        "start_offset": None if held is None else held.start_offset,
        "end_offset_before": None if held_before is None else held_before.end_offset,
        "end_offset": None if held is None else held.end_offset,
        "topic_id_before": ids[0],
        "topic_id": ids[1],
        "replicas_before": pair.replicas_before,
        "replicas": pair.replicas,
        "unread_bytes": sum(each.unread_bytes for each in (held_before, held) if each is not None),
        "directory_before": None if before is None else before.path,
        "directory": None if after is None else after.path,
    }


def _has_batches(*logs: PartitionLog) -> bool:
    return not any(map(is_oldest_layout, logs)) and all(log.segments for log in logs)


def _change(before: _Held | None, after: _Held | None, cut: int) -> LogChange:
    """Return what happened to a log, but for a difference of its records."""
    if before is None:
        return LogChange.NEW
    if after is None:
        return LogChange.GONE
    if cut < before.end_offset or after.end_offset < before.end_offset:
        return LogChange.TRUNCATED
    if after.end_offset > before.end_offset:
        return LogChange.GROWN
    is_same = (before.start_offset, before.size, before.records) == (
        *(after.start_offset, after.size, after.records),
    )
    return LogChange.SAME if is_same else LogChange.SHORTENED


def _has_lost_records(pair: LogPair, before: _Held | None, removed: int | None) -> bool:
    """Return whether more records went than lay below the start of the later copy, of a log that no
    cleaner has cleaned."""
    if pair.after is None or before is None or removed is None:
        return False
    if before.records is None or before.records_from is None:
        return False
    cleaned = pair.after.log_dir.cleaner_checkpoints
    is_cleaned = pair.after.topic_partition in cleaned or pair.after.topic == CLUSTER_METADATA
    return not is_cleaned and removed > before.records - before.records_from


def _held(log: PartitionLog, from_offset: int) -> _Held:
    """Return what headers say of a log, and of its records from an offset on. A segment that is
    deleted meanwhile is left out, and logged."""
    start = log_bounds(log, EndRule.LOG_END).start_offset
    held = _Held(start, start, sum(segment.size for segment in log.segments))
    if is_oldest_layout(log):
        held.records = held.records_from = None
        return held
    for segment in log.segments:
        whole, later = HeaderAccount(), HeaderAccount()
        try:
            with opened_segment(segment) as file:
                options = SegmentOptions.of(segment)
                for chunk in SegmentHeaders(FileWindow(file), options).chunks():
                    table = whole.noted(chunk.table)
                    later.noted(table[table[:, column.LAST_OFFSET] >= from_offset])
        except FileNotFoundError:
            note_deleted_segment(segment)
            continue
        _add(held, whole, later)
    return held


def _add(held: _Held, whole: HeaderAccount, later: HeaderAccount) -> None:
    """Add a segment: all of it, and its batches from the offset on."""
    columns: Mapping[str, Any] = whole.columns()
    held.records = _sum(held.records, whole)
    held.records_from = _sum(held.records_from, later)
    if columns["last_offset"] is not None:
        held.end_offset = max(held.end_offset, columns["last_offset"] + 1)
    held.unread_bytes += columns["unframed_bytes"]


def _sum(records: int | None, account: HeaderAccount) -> int | None:
    columns: Mapping[str, Any] = account.columns()
    more = columns["records"]
    return None if records is None or more is None else records + more - account.control_records
