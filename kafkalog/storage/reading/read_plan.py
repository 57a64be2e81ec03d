"""Which files have to be read for the requested offsets, and which of them go into one task."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, repeat
from typing import Any, Protocol, TypeVar, cast, overload

from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.side_files.indexes import OffsetEntry
from kafkalog.storage.partition_log import (
    ListedSegments,
    MadeOnRequest,
    PartitionLog,
    SegmentFile,
    segment_sizes,
)
from kafkalog.storage.reading.log_bounds import EndRule, RecordedEnd, log_bounds, recorded_end
from kafkalog.storage.reading.offset_ranges import OffsetRange
from kafkalog.storage.reading.replica_reads import Filling, ReplicaSet

# What opening a file counts for when small ones are packed together, in bytes.
OPEN_COST_BYTES = 1024 * 1024
# A smaller part of a segment is read in less time than it costs to begin a task.
LEAST_PART_BYTES = 16 * 1024 * 1024
# More than these take a driver of Spark longer to plan, and more memory, than they save.
MOST_TASKS = 100_000


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


class LogReads(MadeOnRequest[SegmentRead]):
    """The reads of segments of one log, each whole: what they `share`, and the segments as columns.
    A driver keeps millions in this form, and a task gets its own in it."""

    __slots__ = ("segments", "shared")

    def __init__(self, shared: SegmentRead, segments: Sequence[SegmentFile]) -> None:
        self.shared = shared
        self.segments = segments

    def __len__(self) -> int:
        return len(self.segments)

    @overload
    def __getitem__(self, index: int) -> SegmentRead: ...

    @overload
    def __getitem__(self, index: slice) -> LogReads: ...

    def __getitem__(self, index: int | slice) -> SegmentRead | LogReads:
        if isinstance(index, slice):
            return LogReads(self.shared, self.segments[index])
        return self._read(self.segments[index])

    def __iter__(self) -> Iterator[SegmentRead]:
        return map(self._read, self.segments)

    @property
    def topic(self) -> str | None:
        return self.shared.topic

    @property
    def partition(self) -> int | None:
        return self.shared.partition

    @property
    def sizes(self) -> Sequence[int]:
        return segment_sizes(self.segments)

    @property
    def size(self) -> int:
        return sum(self.sizes)

    def _read(self, segment: SegmentFile) -> SegmentRead:
        shared, next_base_offset = self.shared, segment.next_base_offset
        is_last = next_base_offset is None
        # A segment that is cut goes on after its end with offsets that count elsewhere.
        cut = next_base_offset if segment.is_cut else None
        return SegmentRead(
            path=segment.path,
            topic=shared.topic,
            partition=shared.partition,
            base_offset=segment.base_offset,
            next_base_offset=None if segment.is_cut else next_base_offset,
            size=segment.size,
            first_offset=shared.first_offset,
            end_offset=shared.end_offset if cut is None else min(shared.end_offset, cut),
            log_start=shared.log_start,
            high_watermark=shared.high_watermark,
            cluster_id=shared.cluster_id,
            broker_id=shared.broker_id,
            input_path=segment.input_path,
            is_compacted=shared.is_compacted,
            requested_start=shared.requested_start if is_last else None,
            requested_end=shared.requested_end if is_last else None,
            recorded_end=shared.recorded_end if is_last else None,
            committed=shared.committed,
        )


class TaskReads(MadeOnRequest[SegmentRead]):
    """What a task reads: single reads, and those of many segments of a log."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: Sequence[SegmentRead | LogReads]) -> None:
        self.pieces = pieces

    def __len__(self) -> int:
        return sum(len(piece) if isinstance(piece, LogReads) else 1 for piece in self.pieces)

    @overload
    def __getitem__(self, index: int) -> SegmentRead: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[SegmentRead]: ...

    def __getitem__(self, index: int | slice) -> SegmentRead | Sequence[SegmentRead]:
        return tuple(self)[index]

    def __iter__(self) -> Iterator[SegmentRead]:
        return single_reads(self.pieces)


def pieces(group: Sequence[_Read]) -> Sequence[_Read | LogReads]:
    """Return what the group of a task consists of, without making each of its reads."""
    return (
        cast("Sequence[_Read | LogReads]", group.pieces) if isinstance(group, TaskReads) else group
    )


def task_reads(group: Sequence[SegmentRead | LogReads]) -> Sequence[SegmentRead]:
    """Return the reads of a task."""
    is_compact = any(isinstance(piece, LogReads) for piece in group)
    return TaskReads(group) if is_compact else tuple(single_reads(group))


def single_reads(pieces: Iterable[SegmentRead | LogReads]) -> Iterator[SegmentRead]:
    """Yield the reads of single segments."""
    for piece in pieces:
        if isinstance(piece, LogReads):
            yield from piece
        else:
            yield piece


def replica_reads(
    replicas: ReplicaSet, offsets: OffsetRange, committed: CommittedRead | None = None
) -> Sequence[SegmentRead | LogReads]:
    """Return the reads of the best replica's segments as `segment_reads` gives them, with those of
    the others that can fill what is missing."""
    reads = segment_reads(replicas.best, offsets, committed)
    if len(replicas.logs) == 1:
        return [reads]
    segments = zip(reads, reads.segments, strict=True)
    return [replace(read, filling=replicas.filling(segment)) for read, segment in segments]


def segment_reads(
    log: PartitionLog, offsets: OffsetRange, committed: CommittedRead | None = None
) -> LogReads:
    """Return the reads of the segments of a log that can hold requested offsets, judged by their
    names."""
    shared = SegmentRead(
        path=log.path,
        topic=log.topic,
        partition=log.partition,
        base_offset=None,
        next_base_offset=None,
        size=0,
        first_offset=offsets.start,
        end_offset=LARGEST_OFFSET if offsets.end is None else offsets.end,
        log_start=offsets.log_start,
        high_watermark=log_bounds(log, EndRule.HIGH_WATERMARK).end_offset,
        cluster_id=log.log_dir.cluster_id,
        broker_id=log.log_dir.broker_id,
        is_compacted=log.is_compacted,
        requested_start=offsets.requested_start,
        requested_end=offsets.requested_end,
        recorded_end=recorded_end(log),
        committed=committed,
    )
    is_requested = offsets.requested_start is not None or offsets.requested_end is not None
    # Only a reader of the last segment sees that requested offsets lie beyond the log's end.
    needs_last = is_requested or not (offsets.is_empty or offsets.is_filtered)
    start, end = shared.first_offset, shared.end_offset
    return LogReads(shared, segments_within(log.segments, start, end, needs_last=needs_last))


def segments_within(
    segments: Sequence[SegmentFile], start: int, end: int, *, needs_last: bool = False
) -> Sequence[SegmentFile]:
    """Return the segments of a log that can hold offsets [start, end), judged by their names; with
    `needs_last` the log's last one in any case."""
    if not isinstance(segments, ListedSegments):
        return tuple(
            segment
            for segment in segments
            if (needs_last and segment.next_base_offset is None) or _may_hold(segment, start, end)
        )
    base_offsets = segments.base_offsets
    first = max(bisect_right(base_offsets, start) - 1, 0)
    last = bisect_left(base_offsets, end) if start < end else first
    found = segments[first:last]
    if needs_last and last < len(segments):
        return (*found, segments[-1])
    return found


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
    `min_tasks`, more if there would be more than MOST_TASKS; `max_offsets` offsets at most, if
    given."""

    max_bytes: int
    cores: int
    min_tasks: int = 1
    max_offsets: int | None = None

    def bytes_of(self, reads: Sequence[_Sized], least: int) -> int:
        """Return the bytes of a task, where the reads are all there is, not less than `least` but
        to make `min_tasks`."""
        cost = sum(read_cost(read) for read in reads)
        wanted = self._bytes(cost, least)
        return max(min(wanted, cost // self.min_tasks), 1)

    def part_bytes(self, reads: Sequence[_Sized]) -> int:
        """Return the bytes of a part of a segment, the same way: opening it costs nothing."""
        size = sum(read.size for read in reads)
        wanted = self._bytes(size, LEAST_PART_BYTES)
        return max(wanted if self.min_tasks == 1 else min(wanted, size // self.min_tasks), 1)

    def _bytes(self, size: int, least: int) -> int:
        wanted = min(self.max_bytes, max(least, size // max(self.cores, 1)))
        return max(wanted, size // MOST_TASKS)


def _costs(read: _Sized) -> list[int]:
    """Return the cost of each segment, in bytes."""
    sizes = read.sizes if isinstance(read, LogReads) else [read.size]
    return [size + OPEN_COST_BYTES for size in sizes]


def read_cost(read: _Sized) -> int:
    """Return what a read costs, in bytes, with the opening of its files."""
    return read.size + OPEN_COST_BYTES * (len(read) if isinstance(read, LogReads) else 1)


def packed(
    reads: Sequence[_Read], task: TaskSize, offsets: Sequence[int] = ()
) -> list[tuple[_Read, ...]]:
    """Return the reads in groups, a task's each, none larger than requested unless it is a single
    read; a partition's segments stay in order. `offsets` is how many each read has, where that
    matters. Those of a log's segments are divided where a task is full."""
    target = task.bytes_of(reads, OPEN_COST_BYTES)
    most = task.max_offsets or LARGEST_OFFSET
    groups: list[tuple[_Read, ...]] = []
    group: list[_Read] = []
    group_bytes = group_offsets = 0
    for read, count in zip(reads, offsets or repeat(0, len(reads)), strict=True):
        ends = [0, *accumulate(_costs(read))]
        first = 0
        while first < len(ends) - 1:
            room = ends[first] + target - group_bytes
            last = bisect_right(ends, room, first + 1) - 1
            if last == first or group_offsets + count > most:
                if group:
                    groups.append(tuple(group))
                    group, group_bytes, group_offsets = [], 0, 0
                    continue
                last = max(last, first + 1)
            group.append(_piece(read, first, last))
            group_bytes += ends[last] - ends[first]
            group_offsets += count
            first = last
    return [*groups, tuple(group)] if group else groups


def _piece(read: Any, first: int, last: int) -> Any:
    if not isinstance(read, LogReads):
        return read
    return read[first] if last == first + 1 else read[first:last]
