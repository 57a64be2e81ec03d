"""The bytes of one segment, each of them accounted for: sound batches and what is wrong with the
rest. The reference reader of segments.

The result is a table of ranges that touch each other from the first byte to the last. What
follows a damaged batch is found again (`resync`); offsets that no checksum protects are believed
only while they agree with their neighbours. Rules: docs/format.md F60 to F75.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import (
    FIRST_BYTES,
    LEAST_LENGTH,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGICS,
    NO_VALUE,
    BatchHeader,
    computed_crc,
    read_header,
)
from kafkalog.format.faults import Fault
from kafkalog.format.record_batch import MAX_BATCH_BYTES, read_batch
from kafkalog.format.records import Record
from kafkalog.format.resync import Bounds, BytesInMemory, Damage, Finder

# A segment's indexes hold offsets relative to its name as signed 32-bit integers.
MAX_RELATIVE_OFFSET = 2**31 - 1
LARGEST_OFFSET = 2**63 - 1
# After so many damaged ranges in a row a batch waits no longer for a sound follower.
PATIENCE = 1000
# Faults of batches whose offsets are nevertheless right.
_BELIEVED = (Fault.NONE, Fault.TOO_LARGE)


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


def offset_bounds(base_offset: int | None, next_base_offset: int | None) -> Bounds:
    """The offsets that batches of a segment can have: from the file's name to the next one's."""
    if base_offset is None:
        return Bounds(0, LARGEST_OFFSET)
    limit = min(base_offset + MAX_RELATIVE_OFFSET + 1, LARGEST_OFFSET)
    if next_base_offset is not None:
        limit = min(limit, next_base_offset)
    return Bounds(base_offset, limit)


def read_ranges(
    data: bytes,
    base_offset: int | None = None,
    next_base_offset: int | None = None,
    *,
    check_crcs: bool = True,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> list[FileRange]:
    """All ranges of a segment in the order of the file; their sizes add up to the file's.

    `base_offset` is the number in the file's name, `next_base_offset` that of the segment after
    it; None where unknown. Records are not looked into: `read_sound_records` does.
    """
    finder = Finder(BytesInMemory(data))
    account = _Account(offset_bounds(base_offset, next_base_offset))
    position = 0
    while position < len(data):
        fault, header = framing_fault(data, position)
        crc = None
        if header is not None and check_crcs:
            crc = computed_crc(data, position, header)
            fault = Fault.NONE if crc == header.crc else Fault.CHECKSUM
        if header is not None and fault is Fault.NONE:
            fault = Fault.TOO_LARGE if header.size > max_batch_bytes else Fault.NONE
            account.add_batch(FileRange(position, header.size, fault, header, crc), header)
            position += header.size
            continue
        for damage in finder.damaged_stretch(position, fault, account.bounds):
            account.add_damage(damage)
            position = damage.end
    return account.closed()


def framing_fault(data: bytes, position: int) -> tuple[Fault, BatchHeader | None]:
    """What keeps the bytes at `position` from being a whole batch, or its header."""
    left = len(data) - position
    if left < FIRST_BYTES:
        return Fault.TRUNCATED, None
    magic = data[position + MAGIC_POSITION]
    if magic not in MAGICS:
        return Fault.MAGIC, None
    length = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
    if length < LEAST_LENGTH[magic]:
        return Fault.LENGTH, None
    if length > left - LOG_OVERHEAD:
        return Fault.TRUNCATED, None
    return Fault.NONE, read_header(data, position)


class _Account:
    """The ranges found so far, and which of their offsets can be believed.

    The last batch waits for its follower: only that can tell whether a number that is too high
    or one that is too low is the wrong one.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._segment = bounds
        self._ranges: list[FileRange] = []
        self._waiting: tuple[int, BatchHeader] | None = None
        self._waiting_epoch = NO_VALUE
        self._highest_epoch = NO_VALUE
        # What the next batch may have, by what is believed beyond doubt.
        self.bounds = bounds

    def add_damage(self, damage: Damage) -> None:
        size = damage.end - damage.position
        self._ranges.append(
            FileRange(damage.position, size, damage.fault, damage.header, damage.computed_crc)
        )
        if self._waiting is not None and len(self._ranges) - self._waiting[0] > PATIENCE:
            self._believe_waiting()

    def add_batch(self, batch: FileRange, header: BatchHeader) -> None:
        fault = self._offset_fault(header)
        if fault is not Fault.NONE:
            self._ranges.append(replace(batch, fault=fault))
            return
        epoch_fault = self._leader_epoch_fault(header.leader_epoch)
        self._waiting = (len(self._ranges), header)
        self._ranges.append(replace(batch, leader_epoch_fault=epoch_fault))

    def _offset_fault(self, header: BatchHeader) -> Fault:
        """What is wrong with the offsets of a batch, after the one that waited is judged."""
        if not self._segment.hold(header):
            return Fault.OFFSET_RANGE
        if self._waiting is None:
            return Fault.NONE if self.bounds.hold(header) else Fault.OFFSET_ORDER
        index, waiting = self._waiting
        if header.base_offset > waiting.last_offset:
            self.bounds = Bounds(waiting.last_offset + 1, self.bounds.limit)
            return Fault.NONE
        if self.bounds.expected <= header.base_offset and header.last_offset < waiting.base_offset:
            # The follower fits before the one that waited: that one's offset is too high.
            self._ranges[index] = replace(self._ranges[index], fault=Fault.OFFSET_ORDER)
            self._waiting_epoch = NO_VALUE
            return Fault.NONE
        return Fault.OFFSET_ORDER

    def _leader_epoch_fault(self, epoch: int) -> bool:
        """Whether this leader epoch goes back. Marks the waiting one if rather that is too high."""
        before, self._waiting_epoch = self._waiting_epoch, epoch
        if before == NO_VALUE or epoch < 0 or epoch >= before:
            self._highest_epoch = max(self._highest_epoch, before)
            return False
        if epoch >= self._highest_epoch and self._waiting is not None:
            index = self._waiting[0]
            self._ranges[index] = replace(self._ranges[index], leader_epoch_fault=True)
            return False
        self._highest_epoch = max(self._highest_epoch, before)
        self._waiting_epoch = NO_VALUE
        return True

    def _believe_waiting(self) -> None:
        if self._waiting is not None:
            self.bounds = Bounds(self._waiting[1].last_offset + 1, self.bounds.limit)
            self._highest_epoch = max(self._highest_epoch, self._waiting_epoch)
            self._waiting, self._waiting_epoch = None, NO_VALUE

    def closed(self) -> list[FileRange]:
        """The whole account; no more follows."""
        expected = self._segment.expected
        ranges: list[FileRange] = []
        for part in self._ranges:
            ranges.append(replace(part, expected_offset=expected))
            if part.header is not None and part.fault in _BELIEVED:
                expected = part.header.last_offset + 1
        return ranges


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
