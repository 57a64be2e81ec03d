"""Where a log begins and ends. Rules: docs/format.md F76 and F95 to F98.

The end of the sound bytes is known only to whoever reads them; here is what can be said before.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kafkalog.storage.partition_log import PartitionLog


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
class ToldEnd:
    """An offset that a log had reached, by the checkpoints beside it; `is_clean` is True where a
    clean stop wrote them, after all else."""

    offset: int
    is_clean: bool


def told_end(log: PartitionLog) -> ToldEnd | None:
    """Where a log ends at the least: at its high watermark, or at the offset up to which it was
    flushed, whichever is later; None where no checkpoint speaks of it."""
    key, log_dir = log.topic_partition, log.log_dir
    if key is None:
        return None
    checkpoints = (log_dir.high_watermarks, log_dir.recovery_points)
    told = max(checkpoint.get(key, 0) for checkpoint in checkpoints)
    return ToldEnd(told, log_dir.is_clean_shutdown) if told else None


def log_bounds(log: PartitionLog, rule: EndRule) -> LogBounds:
    """The offsets of a log that count.

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
