"""Finding the next sound batch after a damaged one, and naming the damage between.

A batch's length leads to the next batch only while the length itself is undamaged. Where it leads
nowhere, the bytes are searched. A payload can hold whole batches of its own (a mirrored topic, a
backup of segments), so a candidate must fit: offsets between the last believed batch and the next
segment, and no sign of being the value of a record. Rules: docs/format.md F64 to F69.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from kafkalog.format import batch_header as layout
from kafkalog.format.batch_header import BatchHeader, read_base_offset, read_header, read_length
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET, Bounds
from kafkalog.format.torn_batch import LEAST_RECORD_BYTES, TornBatch, value_ranges
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.wire import BytesLike
from kafkalog.wire.checksums import RangeChecksum
from kafkalog.wire.varints import VARINT_BYTES, VarintError, read_varint

# Shorter runs of zeros also stand in sound headers; a run this long is a block never written.
LEAST_ZERO_RUN = layout.V2_HEADER_BYTES


class SegmentBytes(Protocol):
    """The bytes of one segment, in memory or not, as the search wants them; zeros in place of those
    that are `unreadable`."""

    size: int

    @property
    def unreadable(self) -> UnreadableRanges:
        """What could not be read of the bytes that have been wanted so far."""

    def read(self, position: int, size: int) -> BytesLike:
        """Return the bytes from `position`, fewer than `size` only at the end of the file."""

    def next_candidate(self, start: int, end: int) -> int | None:
        """Return the first position in [start, end) where a batch could begin, judged by length,
        magic and offsets that are none at all."""

    def zero_run(self, start: int, end: int) -> int:
        """Return how many zero bytes follow each other from `start`, `end` at most."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A range of bytes that is not a sound batch; `header` only if it is framed as one."""

    position: int
    end: int
    fault: Fault
    header: BatchHeader | None = None
    computed_crc: int | None = None


_ANY_OFFSETS = Bounds(0, LARGEST_OFFSET)
# No more of the batches after unreadable bytes is looked at, to know that they are in no value.
_LARGEST_VALUE = 64 * 1024 * 1024


class Finder:
    """Names damage and finds what follows it, for one file."""

    def __init__(self, source: SegmentBytes) -> None:
        self._source = source
        self._checksums = (
            RangeChecksum(source.read, 0, castagnoli=False),
            RangeChecksum(source.read, 0, castagnoli=True),
        )
        # Where the last search began and what it found, so that neighbours do not search again.
        self._last_search: tuple[int, int | None] | None = None

    def damaged_stretch(self, position: int, fault: Fault, bounds: Bounds) -> list[Damage]:
        """Return what begins at `position`, where framing met `fault`, up to where to go on
        reading."""
        end = self._frame_end(position)
        if end is not None and self._source.unreadable.overlap(position, end):
            return self._unreadable_frame(position, end, bounds)
        if end is not None and self._leads_on(end, bounds):
            hidden = self._hidden_batch(position, end, bounds)
            if hidden is not None:
                return [Damage(position, hidden, Fault.LENGTH)]
            return [self._framed(position, end, fault)]
        found = self._search(position + 1, bounds, self._torn_batch(position, bounds))
        if (
            fault is Fault.CHECKSUM
            and end is not None
            and (found is None or found >= end)
            and self._looks_like_header(position, bounds)
        ):
            return [self._framed(position, end, fault)]
        return self._unframed(position, found, bounds)

    def _framed(self, position: int, end: int, fault: Fault) -> Damage:
        if fault is not Fault.CHECKSUM:
            return Damage(position, end, fault)
        header = self._header(position)
        return Damage(position, end, fault, header, self.computed_crc(position, header))

    def _unreadable_frame(self, position: int, end: int, bounds: Bounds) -> list[Damage]:
        """Return a batch that ends at `end` by its length and cannot be read as a whole. What can
        be read of it is believed, its length among it: no checksum says anything of it."""
        header = None if self._hides_header(position) else self._header(position)
        if not (self._leads_on(end, bounds) or self._hides_header(end)):
            found = self._search(position + 1, bounds, self._torn_batch(position, bounds))
            is_before_end = found is not None and found < end
            if is_before_end or not self._looks_like_header(position, bounds):
                return self._unframed(position, found, bounds)
        return [Damage(position, end, Fault.UNREADABLE, header)]

    def _hides_header(self, position: int) -> bool:
        """Return whether some of the header of a batch at `position` cannot be read."""
        unreadable = self._source.unreadable
        if not unreadable:
            return False
        first = self._source.read(position, layout.V2_HEADER_BYTES)
        size = layout.LOG_OVERHEAD + read_length(first)
        header_bytes = max(min(size, layout.V2_HEADER_BYTES), layout.FIRST_BYTES)
        return unreadable.overlap(position, position + header_bytes)

    def _unframed(self, position: int, found: int | None, bounds: Bounds) -> list[Damage]:
        """Return what lies between `position` and the batch that was found after it, None for
        none."""
        end = self._source.size if found is None else found
        if self._source.unreadable.overlap(position, end):
            return self._unreadable_stretch(position, end)
        zeros = self._source.zero_run(position, end)
        if zeros == end - position:
            return [Damage(position, end, Fault.ZEROS)]
        if zeros >= LEAST_ZERO_RUN:
            return [
                Damage(position, position + zeros, Fault.ZEROS),
                Damage(position + zeros, end, Fault.GARBAGE),
            ]
        if not self._looks_like_header(position, bounds):
            return [Damage(position, end, Fault.GARBAGE)]
        if found is None and self._is_cut_short(position):
            return [Damage(position, end, Fault.TRUNCATED)]
        return [Damage(position, end, Fault.LENGTH)]

    def _unreadable_stretch(self, position: int, end: int) -> list[Damage]:
        """Return one damage, and another where nothing but zeros follows what cannot be read."""
        last = self._source.unreadable.within(position, end)[-1]
        zeros = self._source.zero_run(last.end, end)
        if zeros < LEAST_ZERO_RUN or last.end + zeros < end:
            return [Damage(position, end, Fault.UNREADABLE)]
        return [Damage(position, last.end, Fault.UNREADABLE), Damage(last.end, end, Fault.ZEROS)]

    def _frame_end(self, position: int) -> int | None:
        """Return where the batch at `position` ends by its own length, if that is possible at
        all."""
        if self._source.size - position < layout.FIRST_BYTES:
            return None
        length = self._length(position)
        if self._source.unreadable.overlap(position, position + layout.FIRST_BYTES):
            return None
        end = position + layout.LOG_OVERHEAD + length
        return end if length >= layout.LEAST_LENGTH[0] and end <= self._source.size else None

    def _length(self, position: int) -> int:
        return read_length(self._source.read(position, layout.LOG_OVERHEAD))

    def _is_cut_short(self, position: int) -> bool:
        left = self._source.size - position
        if left < layout.LOG_OVERHEAD:
            return True
        length = self._length(position)
        least = layout.LEAST_LENGTH[0]
        if left >= layout.FIRST_BYTES:
            least = layout.LEAST_LENGTH[self._source.read(position + layout.MAGIC_POSITION, 1)[0]]
        return length >= least and length > left - layout.LOG_OVERHEAD

    def _looks_like_header(self, position: int, bounds: Bounds) -> bool:
        """Return whether the bytes that are there could head a batch, its length and checksum
        apart."""
        first = self._source.read(position, layout.V2_HEADER_BYTES)
        has_offset = len(first) >= layout.LENGTH_POSITION
        if has_offset and not bounds.expected <= read_base_offset(first) < bounds.limit:
            return False
        if len(first) < layout.FIRST_BYTES:
            return True
        if first[layout.MAGIC_POSITION] not in layout.MAGICS:
            return False
        if first[layout.MAGIC_POSITION] < 2 or len(first) < layout.V2_HEADER_BYTES:
            return True
        return _is_consistent(read_header(first, 0), bounds)

    def _header(self, position: int) -> BatchHeader:
        return read_header(self._source.read(position, layout.V2_HEADER_BYTES), 0)

    def computed_crc(self, position: int, header: BatchHeader) -> int:
        """Return the checksum of a batch's bytes, however many, never more than a chunk in
        memory."""
        checksum = self._checksums[header.magic == 2]
        return checksum.of(position + header.checksum_start, position + header.size)

    def _plausible(self, position: int, bounds: Bounds) -> BatchHeader | None:
        """Return the header of a whole batch that only its checksum could still refute."""
        if self._frame_end(position) is None:
            return None
        magic = self._source.read(position + layout.MAGIC_POSITION, 1)[0]
        if magic not in layout.MAGICS or self._length(position) < layout.LEAST_LENGTH[magic]:
            return None
        header = self._header(position)
        if not _is_consistent(header, bounds) or self._hides_header(position):
            return None
        fits = self._begins_with_record if magic == 2 else self._is_filled
        return header if fits(position, header) else None

    def _begins_with_record(self, position: int, header: BatchHeader) -> bool:
        """Return whether a batch v2 that is not compressed begins with a length that a record can
        have."""
        if header.compression_id or not header.records_count:
            return True
        start = position + layout.V2_HEADER_BYTES
        first = bytes(self._source.read(start, VARINT_BYTES))
        if self._source.unreadable.overlap(start, start + len(first)):
            return True
        try:
            length, used = read_varint(first, 0, len(first))
        except VarintError:
            return False
        return LEAST_RECORD_BYTES <= length <= header.size - layout.V2_HEADER_BYTES - used

    def _is_filled(self, position: int, header: BatchHeader) -> bool:
        """Return whether key and value of an old message fill it to the last byte."""
        cursor = position + layout.LEGACY_FIELDS_START[header.magic]
        for _ in ("key", "value"):
            fields_start = cursor + layout.FIELD_LENGTH_BYTES
            field = self._source.read(cursor, layout.FIELD_LENGTH_BYTES)
            if self._source.unreadable.overlap(cursor, fields_start):
                return True
            cursor = fields_start + max(int.from_bytes(field, "big", signed=True), 0)
            if cursor > position + header.size:
                return False
        return cursor == position + header.size

    def sound(self, position: int, bounds: Bounds) -> BatchHeader | None:
        """Return the header of the sound batch at a position whose offsets fit, None if there is
        none."""
        header = self._plausible(position, bounds)
        if header is None or self.computed_crc(position, header) != header.crc:
            return None
        if self._source.unreadable.overlap(position, position + header.size):
            return None
        return header

    def _leads_on(self, position: int, bounds: Bounds) -> bool:
        return position == self._source.size or self._plausible(position, bounds) is not None

    def _torn_batch(self, position: int, bounds: Bounds) -> TornBatch | None:
        """Return the batch whose end is missing, if what begins at `position` looks like one."""
        has_header = self._source.size - position >= layout.V2_HEADER_BYTES
        if not has_header or not self._looks_like_header(position, bounds):
            return None
        header = self._header(position)
        return TornBatch(header, value_ranges(self._source.read, position, header))

    def _search(self, start: int, bounds: Bounds, torn: TornBatch | None) -> int | None:
        """Return the first sound batch from `start` on that fits the bounds and is not in a
        payload.

        `torn` is a batch that begins just before `start` and whose end is missing: one that follows
        on it is the log's next, one in its values is none of the log's.
        """
        if self._last_search is not None:
            began, found = self._last_search
            if began <= start and (found is None or start <= found):
                return found
        found, position = None, self._source.next_candidate(start, self._source.size)
        held_end = None
        while position is not None and found is None:
            resume = position + 1
            header = self.sound(position, _ANY_OFFSETS)
            if header is not None:
                # What lies just before a value is its length, never a sound batch.
                value_end = None if position == held_end else self._value_end(position, start)
                if value_end is not None:
                    resume = value_end
                elif torn is not None and torn.holds(position, header):
                    resume = held_end = position + header.size
                else:
                    found, resume = self._first_fitting(position, bounds)
                if found is not None and self._source.unreadable.overlap(start - 1, found):
                    found, resume = self._going_on(found, bounds)
            position = self._source.next_candidate(resume, self._source.size)
        self._last_search = (start, found)
        return found

    def _first_fitting(self, position: int, bounds: Bounds) -> tuple[int | None, int]:
        """Return the first batch within the bounds of the sound ones that follow each other from
        `position`, or None; and where they end."""
        while (header := self.sound(position, _ANY_OFFSETS)) is not None:
            if bounds.hold(header):
                return position, position
            position += header.size
        return None, position

    def _going_on(self, position: int, bounds: Bounds) -> tuple[int | None, int]:
        """Return the position, or None if the sound batches from there on lead nowhere, and their
        end.

        Where the bytes before are unreadable, nothing else says that they are not in a value.
        """
        end, stop = position, min(position + _LARGEST_VALUE, self._source.size)
        while end < stop and (header := self.sound(end, bounds)) is not None:
            end += header.size
            bounds = Bounds(header.last_offset + 1, bounds.limit)
        zeros = self._source.zero_run(end, min(end + LEAST_ZERO_RUN, self._source.size))
        if end >= stop or zeros == LEAST_ZERO_RUN or self._goes_on(end, bounds):
            return position, position
        return None, end

    def _goes_on(self, position: int, bounds: Bounds) -> bool:
        """Return whether a batch begins at `position` that is not sound: unreadable, or at the end
        of the file not whole, or damaged and leading on."""
        if self._hides_header(position):
            return True
        header = self._plausible(position, bounds)
        if header is None:
            has_header = self._source.size - position >= layout.V2_HEADER_BYTES
            is_headed = has_header and self._looks_like_header(position, bounds)
            return is_headed and self._is_cut_short(position)
        end = position + header.size
        return self._source.unreadable.overlap(position, end) or self._leads_on(end, bounds)

    def _value_end(self, position: int, start: int) -> int | None:
        """Return where the value ends that begins at `position`, if the bytes just before say that
        the sound batches there are one.

        In a message of format 0 or 1 the length stands in four bytes, and the message ends with
        its value. In a record of format 2 at least its header count follows, so that neither a
        batch nor the end of the file can.
        """
        first = max(position - VARINT_BYTES, start)
        before = bytes(self._source.read(first, position - first))
        length = before[-layout.FIELD_LENGTH_BYTES :].rjust(layout.FIELD_LENGTH_BYTES, b"\xff")
        message_end = position + int.from_bytes(length, "big")
        end = position
        while (header := self.sound(end, _ANY_OFFSETS)) is not None:
            end += header.size
            if end == message_end:
                return end
        is_value = end < self._source.size and end - position in _varints_at_end(before)
        return end if is_value else None

    def _chain_end(self, position: int, bounds: Bounds, stop: int) -> int:
        """Return where the sound batches that follow each other from `position` end."""
        while position < stop and (header := self.sound(position, bounds)) is not None:
            position += header.size
            bounds = Bounds(header.last_offset + 1, bounds.limit)
        return position

    def _hidden_batch(self, position: int, end: int, bounds: Bounds) -> int | None:
        """Return a sound batch inside the frame [position, end) whose followers lead exactly to its
        end: then it is the frame's length that is wrong."""
        header = self._plausible(position, bounds)
        expected = bounds.expected if header is None else header.last_offset + 1
        next_header = self._plausible(end, bounds) if end < self._source.size else None
        limit = bounds.limit if next_header is None else next_header.base_offset
        inside = Bounds(expected, limit)
        if expected >= limit:
            return None
        candidate = self._source.next_candidate(position + 1, end)
        while candidate is not None:
            reached = self._chain_end(candidate, inside, end)
            if reached == end and self._value_end(candidate, position) is None:
                return candidate
            candidate = self._source.next_candidate(max(candidate + 1, reached), end)
        return None


def _varints_at_end(data: bytes) -> Iterator[int]:
    """Yield what a varint could say that ends where the bytes do, for each width."""
    for width in range(1, len(data) + 1):
        try:
            value, used = read_varint(data, len(data) - width, len(data))
        except VarintError:
            continue
        if used == width:
            yield value


def _is_consistent(header: BatchHeader, bounds: Bounds) -> bool:
    """Return whether offsets lie within the bounds and the count is one they allow."""
    if not bounds.hold(header):
        return False
    return header.magic < 2 or 0 <= header.records_count <= header.last_offset_delta + 1
