"""Which files have to be read for the requested offsets, and which of them go into one task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.indexes import OffsetEntry
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.log_bounds import EndRule, RecordedEnd, log_bounds, recorded_end
from kafkalog.storage.reading.offset_ranges import OffsetRange
from kafkalog.storage.reading.replica_reads import Filling, ReplicaSet

# What opening a file counts for when small ones are packed together, in bytes.
OPEN_COST_BYTES = 1024 * 1024
# A smaller part of a segment is read in less time than it costs to begin a task.
LEAST_PART_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommittedRead:
    """That only records of committed transactions are wanted, of offsets below `stable_offset`,
    which is the largest there is where damage hides how far the log went on.

    `logs` are the replicas in which to look for the ends of transactions, the one that is read
    first, and up to where each of them is of its lineage; one without segments has those that are
    in its directory. `end_offset` is where the log ended when its stable offset was found.
    """

    logs: tuple[tuple[PartitionLog, int], ...]
    stable_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class SegmentRead:
    """One segment's part of what is requested: offsets [first_offset, end_offset).

    `requested_start`, `requested_end` and `recorded_end` are set on a log's last segment only,
    where an offset beyond the log's end shows.

    A part of a larger segment begins at `start_position`, as an index says: a hint. `size` is about
    how many bytes it has, `requested_offset` where the whole read begins, `next_position` the start
    of the next part.
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
    requested_start: int | None = None
    requested_end: int | None = None
    recorded_end: RecordedEnd | None = None
    filling: Filling | None = None
    committed: CommittedRead | None = None
    start_position: int = 0
    requested_offset: int | None = None
    next_position: int | None = None


def replica_reads(
    replicas: ReplicaSet, offsets: OffsetRange, committed: CommittedRead | None = None
) -> Iterator[SegmentRead]:
    """Yield the segments of the best replica as `segment_reads` gives them, with those of the
    others that can fill what is missing."""
    segments = {segment.path: segment for segment in replicas.best.segments}
    for read in segment_reads(replicas.best, offsets, committed):
        is_alone = len(replicas.logs) == 1
        yield read if is_alone else replace(read, filling=replicas.filling(segments[read.path]))


def segment_reads(
    log: PartitionLog, offsets: OffsetRange, committed: CommittedRead | None = None
) -> Iterator[SegmentRead]:
    """Yield the segments of a log that can hold requested offsets, judged by their names."""
    is_requested = offsets.requested_start is not None or offsets.requested_end is not None
    end = LARGEST_OFFSET if offsets.end is None else offsets.end
    high_watermark = log_bounds(log, EndRule.HIGH_WATERMARK).end_offset
    for segment in log.segments:
        next_base_offset = segment.next_base_offset
        is_last = next_base_offset is None
        # Only a reader of the last segment sees that requested offsets lie beyond the log's end.
        is_needed = is_last and (is_requested or not offsets.is_empty)
        if not is_needed and not _may_hold(segment, offsets.start, end):
            continue
        # A segment that is cut goes on after its end with offsets that count elsewhere.
        cut = next_base_offset if segment.is_cut else None
        yield SegmentRead(
            path=segment.path,
            topic=log.topic,
            partition=log.partition,
            base_offset=segment.base_offset,
            next_base_offset=None if segment.is_cut else next_base_offset,
            size=segment.size,
            first_offset=offsets.start,
            end_offset=end if cut is None else min(end, cut),
            log_start=offsets.log_start,
            high_watermark=high_watermark,
            cluster_id=log.log_dir.cluster_id,
            broker_id=log.log_dir.broker_id,
            input_path=segment.input_path,
            is_compacted=log.is_compacted,
            requested_start=offsets.requested_start if is_last else None,
            requested_end=offsets.requested_end if is_last else None,
            recorded_end=recorded_end(log) if is_last else None,
            committed=committed,
        )


def _may_hold(segment: SegmentFile, start: int, end: int) -> bool:
    base, next_base_offset = segment.base_offset or 0, segment.next_base_offset
    return max(base, start) < end and (next_base_offset is None or start < next_base_offset)


def in_parts(
    read: SegmentRead, start: int, end: int, cuts: Sequence[OffsetEntry]
) -> list[SegmentRead]:
    """Return the read, of the bytes [start, end) of its file, in parts: each but the last ends with
    the offset of an entry, and where that entry leads the next one's walk may begin. Entries
    rise."""
    firsts = [read.first_offset, *(cut.offset + 1 for cut in cuts)]
    places = [start, *(cut.position for cut in cuts)]
    requested = read.first_offset if read.requested_offset is None else read.requested_offset
    parts = [
        replace(
            read,
            first_offset=first,
            end_offset=next_first,
            size=max(next_place - place, 0),
            start_position=place,
            requested_offset=requested,
            next_position=next_place or None,
            requested_start=None,
            requested_end=None,
            recorded_end=None,
        )
        for first, next_first, place, next_place in zip(
            firsts[:-1], firsts[1:], places[:-1], places[1:], strict=True
        )
    ]
    last = replace(
        read,
        first_offset=firsts[-1],
        size=max(end - places[-1], 0),
        start_position=places[-1],
        requested_offset=read.requested_offset if not cuts else requested,
    )
    return [*parts, last]


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


_Read = TypeVar("_Read", bound=_Sized)


@dataclass(frozen=True, slots=True)
class TaskSize:
    """How much one task reads: `max_bytes` at most, and less if that keeps `cores` busy or makes
    `min_tasks`; `max_offsets` offsets at most, if given."""

    max_bytes: int
    cores: int
    min_tasks: int = 1
    max_offsets: int | None = None

    def bytes_of(self, reads: Sequence[_Sized], least: int) -> int:
        """Return the bytes of a task, where the reads are all there is, not less than `least` but
        to make `min_tasks`."""
        cost = sum(read.size + OPEN_COST_BYTES for read in reads)
        wanted = min(self.max_bytes, max(least, cost // max(self.cores, 1)))
        return max(min(wanted, cost // self.min_tasks), 1)

    def part_bytes(self, reads: Sequence[_Sized]) -> int:
        """Return the bytes of a part of a segment, the same way: opening it costs nothing."""
        size = sum(read.size for read in reads)
        wanted = min(self.max_bytes, max(LEAST_PART_BYTES, size // max(self.cores, 1)))
        return max(wanted if self.min_tasks == 1 else min(wanted, size // self.min_tasks), 1)


def packed(
    reads: Sequence[_Read], task: TaskSize, offsets: Sequence[int] = ()
) -> list[tuple[_Read, ...]]:
    """Return the reads in groups, a task's each, none larger than requested unless it is a single
    read; a partition's segments stay in order. `offsets` is how many each read has, where that
    matters."""
    target = task.bytes_of(reads, OPEN_COST_BYTES)
    most = task.max_offsets or LARGEST_OFFSET
    groups: list[tuple[_Read, ...]] = []
    group: list[_Read] = []
    group_bytes = group_offsets = 0
    for read, count in zip(reads, offsets or [0] * len(reads), strict=True):
        size = read.size + OPEN_COST_BYTES
        if group and (group_bytes + size > target or group_offsets + count > most):
            groups.append(tuple(group))
            group, group_bytes, group_offsets = [], 0, 0
        group.append(read)
        group_bytes += size
        group_offsets += count
    return [*groups, tuple(group)] if group else groups
