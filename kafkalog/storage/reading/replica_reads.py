"""What a segment is read with where other replicas can fill what is damaged in it.

Rules: docs/format.md F174 and F175.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.storage.partition_log import PartitionLog, SegmentFile
from kafkalog.storage.reading.replicas import ReplicaFacts, believed_end, epoch_divergence


@dataclass(frozen=True, slots=True)
class OtherSegment:
    """Another replica's segment; only its offsets below `end_offset` are of the best lineage."""

    path: str
    base_offset: int | None
    next_base_offset: int | None
    end_offset: int
    broker_id: int | None


@dataclass(frozen=True, slots=True)
class Filling:
    """Where to look for offsets that are missing in a segment up to `end_offset`, best first.

    The segment itself counts up to `own_end`. `fills_gaps` is False where the cleaner leaves gaps:
    then only damage is filled, and what is missing at the end. `end_is_known` is True where the end
    of the segment's offsets is certain: damage after it has lost none.
    """

    others: tuple[OtherSegment, ...]
    own_end: int
    end_offset: int
    fills_gaps: bool
    end_is_known: bool = True


@dataclass(frozen=True)
class ReplicaSet:
    """The replicas of a partition, the best first, and what their files say of each."""

    logs: tuple[PartitionLog, ...]
    facts: tuple[ReplicaFacts, ...]

    @property
    def best(self) -> PartitionLog:
        return self.logs[0]

    @cached_property
    def agreed_ends(self) -> tuple[int, ...]:
        """Up to where each replica is of the best one's lineage. Every segment's plan asks for it,
        and the tails of all replicas are compared for it."""
        return tuple(self._agreed_end(number) for number in range(len(self.logs)))

    def _agreed_end(self, number: int) -> int:
        others = [facts for index, facts in enumerate(self.facts) if index != number]
        end = believed_end(self.facts[number], others)
        divergence = epoch_divergence(self.facts[number], self.facts[0])
        differs_at = self.facts[number].differs_at
        return min(end if each is None else each for each in (end, divergence, differs_at))

    @property
    def logs_and_ends(self) -> tuple[tuple[PartitionLog, int], ...]:
        """The replicas, each with the offset up to which it is of the best one's lineage."""
        ends = (self._own_end, *self.agreed_ends[1:])
        return tuple(zip(self.logs, ends, strict=True))

    @property
    def _own_end(self) -> int:
        """Up to where the best replica itself counts. Where nothing speaks against its own end,
        whatever is sound after it counts as well."""
        end = self.agreed_ends[0]
        return LARGEST_OFFSET if end == self.facts[0].log_end else end

    @property
    def lineage_end(self) -> int:
        """Where the best lineage ends, in whichever replica."""
        return max(self.agreed_ends)

    @property
    def is_compacted(self) -> bool:
        return any(log.is_compacted for log in self.logs)

    def filling(self, segment: SegmentFile) -> Filling:
        """Return what a segment of the best replica is read with."""
        end = segment.next_base_offset
        end = self.lineage_end if end is None else end
        others = tuple(
            OtherSegment(
                other.path,
                other.base_offset,
                other.next_base_offset,
                self.agreed_ends[number],
                log.log_dir.broker_id,
            )
            for number, log in enumerate(self.logs)
            if number > 0
            for other in _overlapping(log.segments, segment.base_offset or 0, end)
        )
        is_last = segment.next_base_offset is None
        return Filling(
            others,
            self._own_end if is_last else min(end, self._own_end),
            end,
            fills_gaps=not self.is_compacted,
            end_is_known=not is_last or self._has_sound_end,
        )

    @property
    def _has_sound_end(self) -> bool:
        """Whether another replica reaches the end of the best lineage and has no damage there."""
        return any(
            self.facts[number].ends_soundly and self.agreed_ends[number] == self.lineage_end
            for number in range(1, len(self.logs))
        )


def _overlapping(segments: Sequence[SegmentFile], start: int, end: int) -> list[SegmentFile]:
    """Return the segments, which rise, that can hold offsets [start, end)."""
    first = max(bisect_right(segments, start, key=_base_offset) - 1, 0)
    after = bisect_left(segments, end, key=_base_offset)
    return [segment for segment in segments[first:after] if overlaps(segment, start, end)]


def overlaps(segment: SegmentFile, start: int, end: int) -> bool:
    """Return whether a segment can hold offsets [start, end)."""
    after = segment.next_base_offset
    return (after is None or after > start) and _base_offset(segment) < end


def _base_offset(segment: SegmentFile) -> int:
    return segment.base_offset or 0
