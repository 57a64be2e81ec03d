"""The log of a partition by the names and sizes of the files in its directory."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from itertools import zip_longest

from kafkalog.storage.files.entries import Entry
from kafkalog.storage.log_dir.tiered_storage import TieredPartition
from kafkalog.storage.names import (
    any_base_offset,
    oldest_base_offset,
    oldest_partition_name,
    partition_name,
    segment_base_offset,
)
from kafkalog.storage.partition_log import (
    ListedSegments,
    LogDir,
    PartitionLog,
    SegmentFile,
    without_checkpoints,
)
from kafkalog.storage.recovery.loaded_segment import LoadedSegment
from kafkalog.storage.recovery.producer_state import BrokerStartError
from kafkalog.storage.recovery.temporary_files import SWAP, finished_swaps, is_replaced


def listed_log(path: str, entries: list[Entry], log_dir: LogDir, input_path: str) -> PartitionLog:
    """Return the log in a directory with these entries. No file is opened, but where a broker did
    not finish the cleaning of segments."""
    name = partition_name(os.path.basename(path))
    logs = [
        (base_offset, entry)
        for entry in entries
        if (base_offset := segment_base_offset(entry.name)) is not None and not entry.is_directory
    ]
    segments: Sequence[SegmentFile]
    if logs and not any(entry.name.endswith(SWAP) for entry in entries):
        base_offsets = array("q", [base_offset for base_offset, _ in logs])
        sizes = array("q", [entry.size for _, entry in logs])
        segments = ListedSegments(path, base_offsets, sizes, input_path)
    else:
        if not logs:
            logs = _oldest_logs(entries)
            name = oldest_partition_name(os.path.basename(path)) if logs else name
        logs = _with_finished_swaps(logs, entries)
        next_base_offsets = [base_offset for base_offset, _ in logs[1:]]
        segments = tuple(
            SegmentFile(entry.path, base_offset, next_base_offset, entry.size, input_path)
            for (base_offset, entry), next_base_offset in zip_longest(logs, next_base_offsets)
        )
    is_live = name is not None and not name.mark
    return PartitionLog(
        topic=name.topic if name else None,
        partition=name.partition if name else None,
        path=path,
        log_dir=log_dir if is_live else without_checkpoints(log_dir),
        segments=segments,
        is_live=is_live,
    )


def tiered_log(found: TieredPartition, input_path: str) -> PartitionLog:
    """Return the log of a partition's segments in tiered storage."""
    next_base_offsets = [segment.base_offset for segment in found.segments[1:]]
    return PartitionLog(
        topic=found.topic,
        partition=found.partition,
        path=found.path,
        log_dir=LogDir(path=os.path.dirname(found.path)),
        segments=tuple(
            SegmentFile(
                segment.path,
                segment.base_offset,
                next_base_offset,
                segment.size,
                input_path,
                is_cut=True,
            )
            for segment, next_base_offset in zip_longest(found.segments, next_base_offsets)
        ),
        tiered_topic_id=found.topic_id,
    )


def _with_finished_swaps(
    logs: list[tuple[int, Entry]], entries: list[Entry]
) -> list[tuple[int, Entry]]:
    """Return the logs as the next start of a broker would leave them: cleaned segments whose
    renaming was interrupted replace those they were made from. Rule: docs/format.md F117."""
    finished = set(finished_swaps([entry.name for entry in entries]))
    swaps = [
        (base_offset, entry)
        for entry in entries
        if entry.name in finished and (base_offset := any_base_offset(entry.name)) is not None
    ]
    if not swaps:
        return logs
    covered = swaps[0][0], max(_end_offset(base, entry) for base, entry in swaps)
    kept = [log for log in logs if not is_replaced(log[1].name, *covered)]
    return sorted((*kept, *swaps), key=lambda log: log[0])


def _end_offset(base_offset: int, entry: Entry) -> int:
    try:
        return LoadedSegment(base_offset, entry.path, entry.size).next_offset()
    except BrokerStartError:
        return base_offset + 1  # it replaces its own namesake at least


def _oldest_logs(entries: list[Entry]) -> list[tuple[int, Entry]]:
    """Return files of the oldest layout; the numbers in their names have any width."""
    logs = [
        (base_offset, entry)
        for entry in entries
        if not entry.is_directory and (base_offset := oldest_base_offset(entry.name)) is not None
    ]
    return sorted(logs, key=lambda found: found[0])
