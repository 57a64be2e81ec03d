"""The plain reader of segments: every byte accounted for, as sound batches and what is wrong with
the rest. Tests compare the reader of compiled kernels with it (docs/decisions/0001).

The result is a table of ranges that touch each other from the first byte to the last. What
follows a damaged batch is found again (`resync`); offsets that no checksum protects are believed
only while they agree with their neighbours. Rules: docs/format.md F60 to F75.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from kafkalog.columns.batches.offset_plausibility import PATIENCE
from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import FIRST_BYTES, NO_VALUE, BatchHeader, computed_crc
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import Bounds, offset_bounds
from kafkalog.format.record_batch import MAX_BATCH_BYTES, framing_fault, read_batch
from kafkalog.format.records import Record
from kafkalog.format.resync import Damage, Finder
from kafkalog.format.unreadable import UnreadableRanges

# Offset not negative, length at least 14, magic 0 to 2.
_COULD_BEGIN = re.compile(
    rb"(?=[\x00-\x7f].{7}(?!\x00\x00\x00[\x00-\x0d])[\x00-\x7f].{7}[\x00-\x02])", re.DOTALL
)
# Faults of batches whose offsets are nevertheless right.
_RIGHT_OFFSETS = (Fault.NONE, Fault.TOO_LARGE)


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes of a segment that share one fate: a batch, or bytes that are none.

    `header` is that of the batch, None where there is none. `expected_offset` is the least
    offset that the range could begin with: one more than the last believed before it.
    A `leader_epoch_fault` does not make the records less sound.
    """

    position: int
    size: int
    fault: Fault
    header: BatchHeader | None = None
    computed_crc: int | None = None
    expected_offset: int = 0
    leader_epoch_fault: bool = False

    @property
    def end(self) -> int:
        return self.position + self.size


def read_ranges(
    data: bytes,
    base_offset: int | None = None,
    next_base_offset: int | None = None,
    *,
    check_crcs: bool = True,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    unreadable: UnreadableRanges | None = None,
) -> list[FileRange]:
    """All ranges of a segment in the order of the file; their sizes add up to the file's.

    `base_offset` is the number in the file's name, `next_base_offset` that of the segment after
    it; None where unknown. `data` has zeros where it is `unreadable`. Records are not looked into:
    `read_segment_records` does.
    """
    unreadable = unreadable or UnreadableRanges()
    finder = Finder(BytesInMemory(data, unreadable))
    account = _Account(offset_bounds(base_offset, next_base_offset))
    position = 0
    while position < len(data):
        fault, header = framing_fault(data, position)
        crc = None
        if header is not None and check_crcs:
            crc = computed_crc(data, position, header)
            fault = Fault.NONE if crc == header.crc else Fault.CHECKSUM
        if header is not None and unreadable.overlap(position, position + header.size):
            fault = Fault.UNREADABLE
        if header is not None and fault is Fault.NONE:
            fault = Fault.TOO_LARGE if header.size > max_batch_bytes else Fault.NONE
            account.add_batch(FileRange(position, header.size, fault, header, crc), header)
            position += header.size
            continue
        for damage in finder.damaged_stretch(position, fault, account.bounds):
            account.add_damage(damage)
            position = damage.end
    return account.closed()


class _Batch(NamedTuple):
    """A batch whose offsets are to be checked, and its number among the ranges."""

    number: int
    header: BatchHeader


class _Account:
    """The ranges found so far, and which of their offsets are right.

    A batch is pending until the next one: only that shows whether a number that is too high or one
    that is too low is the wrong one. If the two contradict each other the next batch decides.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._segment = bounds
        self._ranges: list[FileRange] = []
        self._epochs = _LeaderEpochs()
        self._pending: _Batch | None = None
        self._conflicting: _Batch | None = None  # contradicts the pending one
        # What the next batch may have, by the confirmed batches.
        self.bounds = bounds

    def add_damage(self, damage: Damage) -> None:
        size = damage.end - damage.position
        self._ranges.append(
            FileRange(damage.position, size, damage.fault, damage.header, damage.computed_crc)
        )
        self._limit_pending()

    def add_batch(self, batch: FileRange, header: BatchHeader) -> None:
        self._ranges.append(batch)
        if not self._segment.hold(header):
            self._mark(len(self._ranges) - 1, Fault.OFFSET_RANGE)
        else:
            self._check(_Batch(len(self._ranges) - 1, header))
        self._limit_pending()

    def _check(self, batch: _Batch) -> None:
        offset = batch.header.base_offset
        if offset < self.bounds.expected:
            self._mark(batch.number, Fault.OFFSET_ORDER)
        elif self._pending is None:
            self._accept(batch)
        elif self._conflicting is not None:
            self._decide(offset)
            self._check(batch)
        elif offset > self._pending.header.last_offset:
            self._confirm_pending()
            self._accept(batch)
        else:
            self._conflicting = batch

    def _accept(self, batch: _Batch) -> None:
        self._pending = batch
        self._epochs.add(batch.number, batch.header.leader_epoch)

    def _decide(self, following: int | None) -> None:
        """End a contradiction: one of the two is the fault. `following` is the next base offset."""
        if self._pending is None or self._conflicting is None:
            return
        conflicting, self._conflicting = self._conflicting, None
        if self._conflicting_is_right(self._pending.header, conflicting.header, following):
            self._mark(self._pending.number, Fault.OFFSET_ORDER)
            self._epochs.forget(self._pending.number)
            self._accept(conflicting)
        else:
            self._mark(conflicting.number, Fault.OFFSET_ORDER)

    def _conflicting_is_right(
        self, pending: BatchHeader, conflicting: BatchHeader, following: int | None
    ) -> bool:
        """Which of two batches that contradict each other is in its place.

        The one that the following batch can come after; of two such the one that it follows on;
        then the earlier, if it follows on the confirmed batches; then the later, if it does, or if
        the earlier would fit just before it, or if they do not overlap; and the earlier at last.
        """
        if following is not None:
            can_follow = following > conflicting.last_offset
            if can_follow != (following > pending.last_offset):
                return can_follow
            follows_on = following == conflicting.last_offset + 1
            if follows_on != (following == pending.last_offset + 1):
                return follows_on
        if pending.base_offset == self.bounds.expected:
            return False
        room = conflicting.base_offset - self.bounds.expected
        fills_the_room = room == pending.last_offset - pending.base_offset + 1
        return room == 0 or fills_the_room or conflicting.last_offset < pending.base_offset

    def _confirm_pending(self) -> None:
        if self._pending is not None:
            self.bounds = Bounds(self._pending.header.last_offset + 1, self.bounds.limit)
        self._pending = None

    def _decide_all(self) -> None:
        """Decide by what is known."""
        self._decide(None)
        self._confirm_pending()
        self._epochs.decide_all()

    def _limit_pending(self) -> None:
        undecided = [self._epochs.first_open, self._pending.number if self._pending else None]
        first = min((index for index in undecided if index is not None), default=None)
        if first is not None and len(self._ranges) - first > PATIENCE:
            self._decide_all()

    def _mark(self, index: int, fault: Fault) -> None:
        self._ranges[index] = replace(self._ranges[index], fault=fault)

    def closed(self) -> list[FileRange]:
        """The whole account; no more follows."""
        self._decide_all()
        expected = self._segment.expected
        ranges: list[FileRange] = []
        for index, part in enumerate(self._ranges):
            flagged = index in self._epochs.out_of_order
            ranges.append(replace(part, expected_offset=expected, leader_epoch_fault=flagged))
            if part.header is not None and part.fault in _RIGHT_OFFSETS:
                expected = part.header.last_offset + 1
        return ranges


class _Epoch(NamedTuple):
    """The leader epoch of a batch, and the batch's number among the ranges."""

    number: int
    epoch: int


class _LeaderEpochs:
    """Which batches have a leader epoch that is out of order, by the same reasoning."""

    def __init__(self) -> None:
        self.out_of_order: set[int] = set()
        self._highest = NO_VALUE  # of the confirmed ones
        self._pending: _Epoch | None = None
        self._conflicting: _Epoch | None = None

    @property
    def first_open(self) -> int | None:
        """The first batch that is not decided yet."""
        return self._pending.number if self._pending else None

    def add(self, index: int, epoch: int) -> None:
        if epoch < 0:
            self.decide_all()
            return
        if self._pending is not None and self._conflicting is not None:
            self._decide(for_conflicting=epoch < self._pending.epoch)
        if epoch < self._highest:
            self.out_of_order.add(index)
        elif self._pending is None or epoch >= self._pending.epoch:
            self._confirm_pending()
            self._pending = _Epoch(index, epoch)
        else:
            self._conflicting = _Epoch(index, epoch)

    def _decide(self, *, for_conflicting: bool) -> None:
        if self._pending is None or self._conflicting is None:
            return
        wrong, right = (
            (self._pending, self._conflicting)
            if for_conflicting
            else (self._conflicting, self._pending)
        )
        self.out_of_order.add(wrong.number)
        self._pending, self._conflicting = right, None

    def _confirm_pending(self) -> None:
        if self._pending is not None:
            self._highest = max(self._highest, self._pending.epoch)
        self._pending = None

    def forget(self, index: int) -> None:
        """The batch is damaged otherwise and says nothing of epochs."""
        if self._conflicting is not None and self._conflicting.number == index:
            self._conflicting = None
        elif self._pending is not None and self._pending.number == index:
            self._pending, self._conflicting = self._conflicting, None

    def decide_all(self) -> None:
        """Decide by what is known: of two the higher is wrong."""
        self._decide(for_conflicting=True)
        self._confirm_pending()


def with_record_faults(
    data: bytes,
    ranges: list[FileRange],
    *,
    check_crcs: bool = True,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> list[FileRange]:
    """The same ranges, those marked whose batch is sound by its header and yields no records."""
    checked: list[FileRange] = []
    for part in ranges:
        try:
            if part.fault is Fault.NONE:
                read_batch(
                    data,
                    part.position,
                    expected_offset=part.expected_offset,
                    check_crcs=check_crcs,
                    max_batch_bytes=max_batch_bytes,
                )
            checked.append(part)
        except CorruptDataError as error:
            checked.append(replace(part, fault=Fault[error.fault.upper()]))
    return checked


def read_segment_records(data: bytes, ranges: list[FileRange]) -> list[Record]:
    """The records of all batches without a fault, control records included."""
    return [
        record
        for part in ranges
        if part.fault is Fault.NONE
        for record in read_batch(data, part.position, expected_offset=part.expected_offset)
    ]


class BytesInMemory:
    """A whole file as one bytes object."""

    def __init__(self, data: bytes, unreadable: UnreadableRanges) -> None:
        self._data = data
        self.size = len(data)
        self.unreadable = unreadable

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]

    def next_candidate(self, start: int, end: int) -> int | None:
        stop = min(end + FIRST_BYTES - 1, self.size)
        match = _COULD_BEGIN.search(self._data, start, stop)
        return match.start() if match else None

    def zero_run(self, start: int, end: int) -> int:
        stretch = self._data[start:end]
        return len(stretch) - len(stretch.lstrip(b"\0"))
