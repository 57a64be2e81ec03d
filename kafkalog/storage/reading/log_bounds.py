"""Where a log begins and ends. Rules: docs/format.md F76 and F95 to F98.

The end of the sound bytes is known only to whoever reads them; here is what can be said before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import Enum

from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.index_lookup import last_indexed_offset


class EndRule(Enum):
    """Which end of a log counts."""

    LOG_END = "logEnd"
    HIGH_WATERMARK = "highWatermark"


@dataclass(frozen=True, slots=True)
class LogBounds:
    """`end_offset` is exclusive, None for the end of the sound bytes."""

    start_offset: int
    end_offset: int | None


@dataclass(frozen=True, slots=True)
class RecordedEnd:
    """An offset that a log had reached, by the checkpoints beside it, 0 where they do not name the
    log; `is_clean` is True where a clean stop wrote them, after all else.

    `last_log` is the log file of the last segment, whose indexes know more than the checkpoints
    where it has no batch; `is_trimmed` is True where a clean stop has closed them.
    """

    offset: int
    is_clean: bool
    last_log: str | None = None
    is_trimmed: bool = False
    is_by_indexes: bool = False


def recorded_end(log: PartitionLog) -> RecordedEnd:
    """Return where a log ends at the least: at its high watermark, or at the offset up to which it
    was flushed, whichever is later."""
    key, log_dir = log.topic_partition, log.log_dir
    checkpoints = (log_dir.high_watermarks, log_dir.recovery_points)
    return RecordedEnd(
        max(0 if key is None else checkpoint.get(key, 0) for checkpoint in checkpoints),
        log_dir.is_clean_shutdown,
        log.segments[-1].path if log.segments else None,
        log.is_trimmed,
    )


def with_indexes(recorded: RecordedEnd, log_end: int) -> RecordedEnd:
    """Return the end that the indexes of the last segment name, where that is later and the log
    ends at `log_end`, at the segment's base: without a batch in it, an entry is of a lost one. The
    same of indexes that are there without their log."""
    if recorded.last_log is None:
        return recorded
    last_offset = last_indexed_offset(recorded.last_log, log_end)
    if last_offset is None:
        orphaned = os.path.join(os.path.dirname(recorded.last_log), f"{log_end:020d}.log")
        last_offset = last_indexed_offset(orphaned, log_end)
    if last_offset is None or last_offset < recorded.offset:
        return replace(recorded, last_log=None)
    return RecordedEnd(last_offset + 1, recorded.is_trimmed, is_by_indexes=True)


def log_bounds(log: PartitionLog, rule: EndRule) -> LogBounds:
    """Return the offsets of a log that count.

    It begins at the log start checkpoint or at the first segment, whichever is later: the
    checkpoint is kept only where records inside the first segment are deleted, and in tiered
    storage it speaks of remote segments. The high watermark is the checkpoint's after a clean
    shutdown; after any other the checkpoint may be stale, even 0, and the log end counts. A log
    without a segment ends where it starts.
    """
    key = log.topic_partition
    start = log.log_start
    if not log.segments:
        return LogBounds(start, start)
    end: int | None = None
    if rule is EndRule.HIGH_WATERMARK and key and log.log_dir.is_clean_shutdown:
        end = log.log_dir.high_watermarks.get(key)
    return LogBounds(max(start, log.segments[0].base_offset or 0), end)
