"""Which files have to be read for the asked offsets, and which of them go into one task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from kafkalog.format.segment import LARGEST_OFFSET
from kafkalog.storage.log_bounds import EndRule, log_bounds
from kafkalog.storage.log_dir import PartitionLog, SegmentFile
from kafkalog.storage.offset_ranges import OffsetRange
from kafkalog.storage.replica_reads import Filling, ReplicaSet

# What opening a file counts for when small ones are packed together, in bytes.
OPEN_COST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommittedRead:
    """That only records of committed transactions are wanted, of offsets below `stable_offset`.

    `logs` are the replicas in which to look for the ends of transactions, the one that is read
    first, and up to where each of them is of its lineage; one without segments has those that are
    in its directory. `end_offset` is where the log ended when its stable offset was found.
    """

    logs: tuple[tuple[PartitionLog, int], ...]
    stable_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class SegmentRead:
    """One segment's part of what is asked: offsets [first_offset, end_offset).

    `asked_start` and `asked_end` are set on a log's last segment only, where an offset beyond the
    log's end shows.
    """

    path: str
    topic: str | None
    partition: int | None
    base_offset: int | None
    next_base_offset: int | None
    size: int
    first_offset: int
    end_offset: int
    log_start: int = 0
    high_watermark: int | None = None
    cluster_id: str | None = None
    broker_id: int | None = None
    input_path: str = ""
    is_compacted: bool = False
    asked_start: int | None = None
    asked_end: int | None = None
    filling: Filling | None = None
    committed: CommittedRead | None = None


def replica_reads(
    replicas: ReplicaSet, offsets: OffsetRange, committed: CommittedRead | None = None
) -> Iterator[SegmentRead]:
    """The segments of the best replica as `segment_reads` gives them, with those of the others
    that can fill what is missing."""
    segments = {segment.path: segment for segment in replicas.best.segments}
    for read in segment_reads(replicas.best, offsets, committed):
        is_alone = len(replicas.logs) == 1
        yield read if is_alone else replace(read, filling=replicas.filling(segments[read.path]))


def segment_reads(
    log: PartitionLog, offsets: OffsetRange, committed: CommittedRead | None = None
) -> Iterator[SegmentRead]:
    """The segments of a log that can hold asked offsets, judged by their names."""
    is_asked = offsets.asked_start is not None or offsets.asked_end is not None
    end = LARGEST_OFFSET if offsets.end is None else offsets.end
    high_watermark = log_bounds(log, EndRule.HIGH_WATERMARK).end_offset
    for segment in log.segments:
        follower = segment.next_base_offset
        is_last = follower is None
        # Only a reader of the last segment can tell that asked offsets lie beyond the log's end.
        is_needed = is_last and (is_asked or not offsets.is_empty)
        if not is_needed and not _may_hold(segment, offsets.start, end):
            continue
        yield SegmentRead(
            path=segment.path,
            topic=log.topic,
            partition=log.partition,
            base_offset=segment.base_offset,
            next_base_offset=segment.next_base_offset,
            size=segment.size,
            first_offset=offsets.start,
            end_offset=end,
            log_start=offsets.log_start,
            high_watermark=high_watermark,
            cluster_id=log.log_dir.cluster_id,
            broker_id=log.log_dir.broker_id,
            input_path=segment.input_path,
            is_compacted=log.topic_partition in log.log_dir.cleaner_checkpoints,
            asked_start=offsets.asked_start if is_last else None,
            asked_end=offsets.asked_end if is_last else None,
            committed=committed,
        )


def _may_hold(segment: SegmentFile, start: int, end: int) -> bool:
    base, follower = segment.base_offset or 0, segment.next_base_offset
    return max(base, start) < end and (follower is None or start < follower)


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


_Read = TypeVar("_Read", bound=_Sized)


def packed(reads: Sequence[_Read], max_partition_bytes: int, cores: int) -> list[tuple[_Read, ...]]:
    """The reads in as many groups as keep `cores` busy, none larger than allowed unless it is a
    single file; a partition's segments stay in order."""
    cost = sum(read.size + OPEN_COST_BYTES for read in reads)
    target = min(max_partition_bytes, max(OPEN_COST_BYTES, cost // max(cores, 1)))
    groups: list[tuple[_Read, ...]] = []
    group: list[_Read] = []
    group_bytes = 0
    for read in reads:
        size = read.size + OPEN_COST_BYTES
        if group and group_bytes + size > target:
            groups.append(tuple(group))
            group, group_bytes = [], 0
        group.append(read)
        group_bytes += size
    return [*groups, tuple(group)] if group else groups
