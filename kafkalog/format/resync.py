"""Finding the next sound batch behind a damaged one, and naming the damage between.

A batch's length leads to the next batch only while the length itself is undamaged. Where it leads
nowhere, the bytes are searched. A payload can hold whole batches of its own (a mirrored topic, a
backup of segments), so a candidate must fit: offsets between the last believed batch and the next
segment, and no sign of being the value of a record. Rules: docs/format.md F64 to F69.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from kafkalog.format.batch_header import (
    FIRST_BYTES,
    LEAST_LENGTH,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGICS,
    V2_HEADER_BYTES,
    BatchHeader,
    read_header,
)
from kafkalog.format.faults import Fault
from kafkalog.wire import BytesLike
from kafkalog.wire.checksums import RangeChecksum
from kafkalog.wire.varints import VARINT_BYTES, VarintError, read_varint

# Shorter runs of zeros also stand in sound headers; a run this long is a block never written.
LEAST_ZERO_RUN = V2_HEADER_BYTES
_LEGACY_FIELDS_START = (18, 26)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Offsets that the next batch may have: from `expected` up to, not including, `limit`."""

    expected: int
    limit: int

    def hold(self, header: BatchHeader) -> bool:
        """Whether all offsets of a batch lie within."""
        return self.expected <= header.base_offset <= header.last_offset < self.limit


@dataclass(frozen=True, slots=True)
class Damage:
    """A range of bytes that is no sound batch; `header` only if it is framed as one."""

    position: int
    end: int
    fault: Fault
    header: BatchHeader | None = None
    computed_crc: int | None = None


class Bytes(Protocol):
    """The bytes of one file, in memory or not."""

    size: int

    def read(self, position: int, size: int) -> BytesLike:
        """The bytes from `position`, fewer than `size` only at the end of the file."""

    def next_candidate(self, start: int, end: int, bounds: Bounds) -> int | None:
        """The first position in [start, end) where a batch within the bounds could begin, judged
        by offset, length and magic alone."""

    def zero_run(self, start: int, end: int) -> int:
        """How many zero bytes follow each other from `start`, `end` at most."""


class BytesInMemory:
    """A whole file as one bytes object."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, position: int, size: int) -> BytesLike:
        return self._data[position : position + size]

    def next_candidate(self, start: int, end: int, bounds: Bounds) -> int | None:
        if bounds.expected >= bounds.limit:
            return None
        first = bounds.expected.to_bytes(8, "big")
        last = (bounds.limit - 1).to_bytes(8, "big")
        shared = next((i for i in range(8) if first[i] != last[i]), 8)
        pattern = b"(?=%s.{%d}[\x00-\x7f].{7}[\x00-\x02])" % (re.escape(first[:shared]), 8 - shared)
        stop = min(end + FIRST_BYTES - 1, self.size)
        for match in re.compile(pattern, re.DOTALL).finditer(self._data, start, stop):
            if _could_begin(self._data[match.start() : match.start() + FIRST_BYTES], bounds):
                return match.start()
        return None

    def zero_run(self, start: int, end: int) -> int:
        stretch = self._data[start:end]
        return len(stretch) - len(stretch.lstrip(b"\0"))


def _could_begin(first: BytesLike, bounds: Bounds) -> bool:
    offset = int.from_bytes(first[:8], "big", signed=True)
    length = int.from_bytes(first[8:LOG_OVERHEAD], "big", signed=True)
    return bounds.expected <= offset < bounds.limit and length >= LEAST_LENGTH[first[16]]


class Finder:
    """Names damage and finds what follows it, for one file."""

    def __init__(self, source: Bytes) -> None:
        self._source = source
        self._checksums = (
            RangeChecksum(source.read, 0, castagnoli=False),
            RangeChecksum(source.read, 0, castagnoli=True),
        )
        # Where the last search began and what it found, so that neighbours do not search again.
        self._last_search: tuple[int, int | None] | None = None

    def damaged_stretch(self, position: int, fault: Fault, bounds: Bounds) -> list[Damage]:
        """What begins at `position`, where framing met `fault`, up to where to go on reading."""
        end = self._frame_end(position)
        if end is not None and self._leads_on(end, bounds):
            hidden = self._hidden_batch(position, end, bounds)
            if hidden is not None:
                return [Damage(position, hidden, Fault.LENGTH)]
            return [self._framed(position, end, fault)]
        found = self._search(position + 1, bounds)
        if (
            fault is Fault.CHECKSUM
            and end is not None
            and (found is None or found >= end)
            and self._looks_like_header(position, bounds)
        ):
            return [self._framed(position, end, fault)]
        stretch_end = self._source.size if found is None else found
        return self._unframed(position, stretch_end, found is None, bounds)

    def _framed(self, position: int, end: int, fault: Fault) -> Damage:
        if fault is not Fault.CHECKSUM:
            return Damage(position, end, fault)
        header = self._header(position)
        return Damage(position, end, fault, header, self.computed_crc(position, header))

    def _unframed(
        self, position: int, end: int, nothing_follows: bool, bounds: Bounds
    ) -> list[Damage]:
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
        if nothing_follows and self._is_cut_short(position):
            return [Damage(position, end, Fault.TRUNCATED)]
        return [Damage(position, end, Fault.LENGTH)]

    def _frame_end(self, position: int) -> int | None:
        """Where the batch at `position` ends by its own length, if that is possible at all."""
        if self._source.size - position < FIRST_BYTES:
            return None
        length = self._length(position)
        end = position + LOG_OVERHEAD + length
        return end if length >= LEAST_LENGTH[0] and end <= self._source.size else None

    def _length(self, position: int) -> int:
        return int.from_bytes(self._source.read(position + 8, 4), "big", signed=True)

    def _is_cut_short(self, position: int) -> bool:
        left = self._source.size - position
        if left < LOG_OVERHEAD:
            return True
        length = self._length(position)
        least = LEAST_LENGTH[0]
        if left >= FIRST_BYTES:
            least = LEAST_LENGTH[self._source.read(position + MAGIC_POSITION, 1)[0]]
        return length >= least and length > left - LOG_OVERHEAD

    def _looks_like_header(self, position: int, bounds: Bounds) -> bool:
        """Whether the bytes that are there could head a batch, its length and checksum apart."""
        first = self._source.read(position, V2_HEADER_BYTES)
        if len(first) >= 8:
            offset = int.from_bytes(first[:8], "big", signed=True)
            if not bounds.expected <= offset < bounds.limit:
                return False
        if len(first) < FIRST_BYTES:
            return True
        if first[MAGIC_POSITION] not in MAGICS:
            return False
        if first[MAGIC_POSITION] < 2 or len(first) < V2_HEADER_BYTES:
            return True
        return _is_consistent(read_header(first, 0), bounds)

    def _header(self, position: int) -> BatchHeader:
        return read_header(self._source.read(position, V2_HEADER_BYTES), 0)

    def computed_crc(self, position: int, header: BatchHeader) -> int:
        """The checksum of a batch's bytes, however many, never more than a chunk in memory."""
        checksum = self._checksums[header.magic == 2]
        return checksum.of(position + header.checksum_start, position + header.size)

    def _plausible(self, position: int, bounds: Bounds) -> BatchHeader | None:
        """The header of a whole batch that only its checksum could still refute."""
        if self._frame_end(position) is None:
            return None
        magic = self._source.read(position + MAGIC_POSITION, 1)[0]
        if magic not in MAGICS or self._length(position) < LEAST_LENGTH[magic]:
            return None
        header = self._header(position)
        if not _is_consistent(header, bounds):
            return None
        return header if magic == 2 or self._is_filled(position, header) else None

    def _is_filled(self, position: int, header: BatchHeader) -> bool:
        """Whether key and value of an old message fill it to the last byte."""
        cursor = position + _LEGACY_FIELDS_START[header.magic]
        for _ in ("key", "value"):
            field = int.from_bytes(self._source.read(cursor, 4), "big", signed=True)
            cursor += 4 + max(field, 0)
            if cursor > position + header.size:
                return False
        return cursor == position + header.size

    def _sound(self, position: int, bounds: Bounds) -> BatchHeader | None:
        header = self._plausible(position, bounds)
        if header is None or self.computed_crc(position, header) != header.crc:
            return None
        return header

    def _leads_on(self, position: int, bounds: Bounds) -> bool:
        return position == self._source.size or self._plausible(position, bounds) is not None

    def _search(self, start: int, bounds: Bounds) -> int | None:
        """The first sound batch from `start` on that is not the value of a record."""
        if self._last_search is not None:
            began, found = self._last_search
            if began <= start and (found is None or start <= found):
                return found
        found = self._source.next_candidate(start, self._source.size, bounds)
        while found is not None:
            resume = found + 1
            if self._sound(found, bounds) is not None:
                value_end = self._value_end(found, start, bounds)
                if value_end is None:
                    break
                resume = value_end
            found = self._source.next_candidate(resume, self._source.size, bounds)
        self._last_search = (start, found)
        return found

    def _value_end(self, position: int, start: int, bounds: Bounds) -> int | None:
        """Where the batches at `position` end, if the bytes before say that they are a value."""
        end = self._chain_end(position, bounds, self._source.size)
        size = end - position
        before = bytes(self._source.read(max(position - VARINT_BYTES, start), VARINT_BYTES))
        before = before[: position - max(position - VARINT_BYTES, start)]
        if before[-4:] == size.to_bytes(4, "big"):
            return end
        for width in range(1, len(before) + 1):
            try:
                if read_varint(before, len(before) - width, len(before)) == (size, width):
                    return end
            except VarintError:
                continue
        return None

    def _chain_end(self, position: int, bounds: Bounds, stop: int) -> int:
        """Where the sound batches that follow each other from `position` end."""
        while position < stop and (header := self._sound(position, bounds)) is not None:
            position += header.size
            bounds = Bounds(header.last_offset + 1, bounds.limit)
        return position

    def _hidden_batch(self, position: int, end: int, bounds: Bounds) -> int | None:
        """A sound batch inside the frame [position, end) whose followers lead exactly to its end:
        then it is the frame's length that is wrong."""
        header = self._plausible(position, bounds)
        expected = bounds.expected if header is None else header.last_offset + 1
        follower = self._plausible(end, bounds) if end < self._source.size else None
        limit = bounds.limit if follower is None else follower.base_offset
        inside = Bounds(expected, limit)
        if expected >= limit:
            return None
        candidate = self._source.next_candidate(position + 1, end, inside)
        while candidate is not None:
            reached = self._chain_end(candidate, inside, end)
            if reached == end:
                return candidate
            resume = max(candidate + 1, reached)
            candidate = self._source.next_candidate(resume, end, inside)
        return None


def _is_consistent(header: BatchHeader, bounds: Bounds) -> bool:
    """Whether offsets lie within the bounds and the count is one they allow."""
    if not bounds.hold(header):
        return False
    return header.magic < 2 or 0 <= header.records_count <= header.last_offset_delta + 1
