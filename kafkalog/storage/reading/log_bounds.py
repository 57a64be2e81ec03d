"""Where a log begins and ends. Rules: docs/format.md F76 and F95 to F98.

The end of the sound bytes is known only to whoever reads them; here is what can be said before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import entries_left
from kafkalog.storage.log_dir.metadata_snapshots import snapshot_in
from kafkalog.storage.names import CLUSTER_METADATA, segment_file_name, snapshot_offset
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
    where it has no batch; `is_trimmed` is True where a clean stop has closed them, and where no
    segment is left. `directory` is set where the names of the other files are to be looked at too.
    The records below `snapshot_end` are in a snapshot of the cluster's metadata: none is missing.
    """

    offset: int
    is_clean: bool
    last_log: str | None = None
    is_trimmed: bool = False
    is_by_files: bool = False
    directory: str | None = None
    snapshot_end: int = 0


def recorded_end(log: PartitionLog) -> RecordedEnd:
    """Return where a log ends at the least: at its high watermark, or at the offset up to which it
    was flushed, whichever is later."""
    key, log_dir = log.topic_partition, log.log_dir
    checkpoints = (log_dir.high_watermarks, log_dir.recovery_points)
    # No checkpoint names the log of the metadata.
    is_lost, has_checkpoints = not log.segments, log.topic != CLUSTER_METADATA
    return RecordedEnd(
        max(0 if key is None else checkpoint.get(key, 0) for checkpoint in checkpoints),
        log_dir.is_clean_shutdown,
        None if is_lost else log.segments[-1].path,
        is_lost or log.is_trimmed,
        directory=None if log.given_files or (has_checkpoints and not is_lost) else log.path,
    )


def with_files(recorded: RecordedEnd, log_end: int) -> RecordedEnd:
    """Return the end that the files beside a log name which ends at `log_end`, where that is later:
    the indexes of the last segment, if it has no batch; indexes that have lost their log; and, with
    either of them or without any segment, producer snapshots. What this has returned stays."""
    directory, last_log = recorded.directory, recorded.last_log
    if directory is None and last_log is None:
        return recorded
    last_offset = None
    if last_log is not None:
        last_offset = last_indexed_offset(last_log, log_end)
        if last_offset is None:
            orphaned = os.path.join(os.path.dirname(last_log), f"{log_end:020d}.log")
            last_offset = last_indexed_offset(orphaned, log_end)
        if last_offset is not None and directory is None:
            directory = os.path.dirname(last_log)
    end = 0 if last_offset is None else last_offset + 1
    known = replace(recorded, last_log=None, directory=None)
    if directory is not None:
        entries = entries_left(directory)
        known = replace(known, snapshot_end=_snapshot_end(entries))
        end = max(end, _end_by_files(entries, max(log_end, known.snapshot_end)))
    # Either of the two shows a loss that no copy of a running broker explains.
    is_clean = known.is_clean and end <= known.offset
    is_clean |= recorded.is_trimmed and end > log_end
    is_by_files = end > known.offset
    return replace(known, offset=max(end, known.offset), is_clean=is_clean, is_by_files=is_by_files)


def _snapshot_end(entries: Sequence[Entry]) -> int:
    found = (snapshot_in(entry.path) for entry in entries)
    return max((each.end_offset for each in found if each is not None), default=0)


def _end_by_files(entries: Sequence[Entry], log_end: int) -> int:
    """Return the largest offset that indexes without a log, from `log_end` on, and the names of
    producer snapshots give; 0 without any."""
    names = {entry.name for entry in entries}
    ends = [snapshot_offset(entry.name) or 0 for entry in entries]
    for entry in entries:
        name = segment_file_name(entry.name)
        if name is None or name.mark or name.kind not in (".index", ".timeindex"):
            continue
        log_name = f"{name.stem}.log"
        if log_name not in names:
            last = last_indexed_offset(
                os.path.join(os.path.dirname(entry.path), log_name), name.base_offset
            )
            ends.append(name.base_offset if last is None else last + 1)
    return max((end for end in ends if end > log_end), default=0)


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
