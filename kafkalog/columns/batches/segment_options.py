"""How a segment is to be read: from where to where, and what is checked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.offsets import LARGEST_OFFSET
from kafkalog.format.record_batch import MAX_BATCH_BYTES
from kafkalog.storage.partition_log import SegmentFile
from kafkalog.storage.reading.offset_ranges import TimestampRange
from kafkalog.storage.reading.read_plan import SegmentRead


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """How to read a segment.

    `base_offset` and `next_base_offset` are the numbers in its file's name and the next one's, None
    where unknown. Batches wholly below `first_offset` are checked and not decoded: a length that is
    wrong there would swallow what is requested. Reading ends where offsets reach `end_offset`.

    Of the records of requested batches, those with `timestamps` are read, if any are given. Without
    `has_value_bytes` their values may be empty: who reads wants to know which are null.

    `chosen_offsets`, which rise, are those of the records that are wanted, if not all are: of other
    records, some or none are read.

    A walk begins at `start_position` if `may_begin_at` says so, else at the start of the file.
    Where this is one part of a read that was split, `requested_offset` is where the whole read
    begins, and `next_position` where the walk of the next part is to begin.
    """

    base_offset: int | None = None
    next_base_offset: int | None = None
    first_offset: int = 0
    end_offset: int = LARGEST_OFFSET
    check_crcs: bool = True
    max_batch_bytes: int = MAX_BATCH_BYTES
    start_position: int = 0
    requested_offset: int | None = None
    next_position: int | None = None
    timestamps: TimestampRange | None = None
    has_value_bytes: bool = True
    chosen_offsets: LongArray | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls, segment: SegmentFile, *, first_offset: int = 0, check_crcs: bool = True
    ) -> SegmentOptions:
        """Return how to read a segment as it lies in its log."""
        return cls(
            segment.base_offset,
            segment.next_base_offset,
            first_offset=first_offset,
            check_crcs=check_crcs,
        )

    @classmethod
    def of_read(
        cls,
        read: SegmentRead,
        *,
        timestamps: TimestampRange | None = None,
        check_crcs: bool = True,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        has_value_bytes: bool = True,
    ) -> SegmentOptions:
        """Return how to read what a plan has of a segment."""
        return cls(
            base_offset=read.base_offset,
            next_base_offset=read.next_base_offset,
            first_offset=read.first_offset,
            end_offset=read.end_offset,
            check_crcs=check_crcs,
            max_batch_bytes=max_batch_bytes,
            start_position=read.start_position,
            requested_offset=read.requested_offset,
            next_position=read.next_position,
            timestamps=timestamps,
            has_value_bytes=has_value_bytes,
        )

    def is_first_to_tell(self, expected_offset: int) -> bool:
        """Return whether this part is the first with requested offsets that a damaged range may
        have held. `expected_offset` is the first offset that the range may have held."""
        requested = self.first_offset if self.requested_offset is None else self.requested_offset
        return max(expected_offset, requested) >= self.first_offset

    @property
    def next_part(self) -> SegmentOptions | None:
        """How the part after this one begins, if a walk may begin there."""
        if self.next_position is None:
            return None
        return replace(self, first_offset=self.end_offset, start_position=self.next_position)
