"""A segment as a stream of batch tables with the bytes they describe: the fast reader's first half.

Gives the account of a segment's bytes, a piece at a time. Rules: docs/format.md F60 to F75.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.kept_headers import LargeBatches, keep, kept_at
from kafkalog.columns.batches.scan import DONE, MORE_BYTES, set_header_rows
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.segment_walk import (
    CHUNK_BYTES,
    LEAST_CHUNK_BYTES,
    TABLE_ROWS,
    SegmentWalk,
)
from kafkalog.columns.batches.window import Window
from kafkalog.columns.jit.compiled import ByteArray, LongArray
from kafkalog.format import batch_header as layout
from kafkalog.format.faults import Fault
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.wire.checksums import crc32, crc32c

# A walk along headers jumps over batches larger than this, which takes as long as reading them, and
# reads so much at a time where batches are smaller.
_JUMPED_BYTES, _STRETCH_BYTES = 8 * 1024, 64 * 1024
# Where small batches follow each other, stretches double up to this.
_LONGEST_STRETCH_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a batch table in file order and, for sound batches, their bytes: the byte at file
    position p is `data[p - data_position]`. Valid until the next chunk is taken."""

    table: LongArray
    _window: Window

    @property
    def data(self) -> ByteArray:
        return self._window.data

    @property
    def data_position(self) -> int:
        return self._window.position

    @property
    def unreadable(self) -> UnreadableRanges:
        return self._window.unreadable

    def of_rows(self, is_chosen: NDArray[np.bool_]) -> Chunk:
        """Return some of the rows, with the same bytes: what is set in their table is not set in
        this one."""
        return Chunk(self.table[is_chosen], self._window)

    def give_away_data(self) -> None:
        """Leave the memory of `data`, which is empty from now on, to those who hold views of it."""
        self._window.give_away()


class _Batches(ABC):
    """One walk through a segment. Iterate over `chunks()` once."""

    def __init__(self, window: Window, options: SegmentOptions) -> None:
        self._window = window
        self._options = options
        self._walk = SegmentWalk(window, options)

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Yield all ranges of the segment, or those up to where `end_offset` is reached."""

    @property
    def next_offset(self) -> int:
        """One more than the last offset that is confirmed so far."""
        return self._walk.next_offset

    def walk(self) -> int:
        """Walk what `chunks` would give, and return `next_offset`."""
        for _ in self.chunks():
            pass
        return self.next_offset


class SegmentBatches(_Batches):
    """The batches of one segment with their bytes."""

    def chunks(self) -> Iterator[Chunk]:
        compute_checksums = self._compute_checksums if self._options.check_crcs else None
        for decided in self._walk.decided_rows(self._scan, compute_checksums):
            yield from self._chunks(decided)

    def _scan(self) -> int:
        """Frame batches into new rows; DONE, or the fault that ended it."""
        window, position, size = self._window, self._walk.position, self._walk.chunk_bytes
        # After the end of this part its last batch is wanted, no chunk.
        left = (self._options.next_position or window.size) - position
        if 0 < left < size:
            size = max(left, LEAST_CHUNK_BYTES)
        while True:
            kept = self._kept_position()
            window.load(kept, position - kept + size)
            end = min(position + size, window.position + window.filled)
            stop, needed = self._walk.scan_batches(position, end, headers_only=False)
            if stop != MORE_BYTES:
                return stop
            if self._walk.position > position:
                return DONE
            size = needed

    def _kept_position(self) -> int:
        """From where on bytes are still needed: undecided batches are, unless they lie far back."""
        first = (
            int(self._walk.table[0, column.POSITION]) if self._walk.rows else self._walk.position
        )
        return first if self._walk.position - first <= CHUNK_BYTES else self._walk.position

    def _compute_checksums(self, first_row: int) -> None:
        """Set the computed checksum of all rows from `first_row` on."""
        rows = self._walk.table[first_row : self._walk.rows]
        data = self._window.data.data
        starts = rows[:, column.POSITION] - self._window.position
        ends = (starts + rows[:, column.SIZE]).tolist()
        if (rows[:, column.MAGIC] == 2).all():
            starts += layout.V2_CHECKSUM_START
            computed = [crc32c(data[i:j]) for i, j in zip(starts.tolist(), ends, strict=True)]
        else:
            skipped = np.where(
                rows[:, column.MAGIC] == 2, layout.V2_CHECKSUM_START, layout.LEGACY_CHECKSUM_START
            )
            functions = [
                crc32c if magic == 2 else crc32 for magic in rows[:, column.MAGIC].tolist()
            ]
            places = zip((starts + skipped).tolist(), ends, functions, strict=True)
            computed = [function(data[i:j]) for i, j, function in places]
        rows[:, column.COMPUTED_CRC] = computed

    def _chunks(self, decided: int) -> Iterator[Chunk]:
        """Hand out the first `decided` rows."""
        window, rows = self._window, self._walk.table[:decided]
        if decided and (
            rows[0, column.POSITION] < window.position
            or rows[-1, column.POSITION] + rows[-1, column.SIZE] > window.position + window.filled
        ):
            for row in range(decided):
                position, size = rows[row, column.POSITION].item(), rows[row, column.SIZE].item()
                if rows[row, column.FAULT] == 0:
                    window.load(position, size)
                    # It could be read a moment ago, when it was checked.
                    if window.unreadable.overlap(position, position + size):
                        rows[row, column.FAULT] = Fault.UNREADABLE
                yield Chunk(rows[row : row + 1], window)
        elif decided:
            yield Chunk(rows, window)


class SegmentHeaders(_Batches):
    """The batch headers of one segment: payloads are neither read nor checked, and chunks hold
    nothing but their tables."""

    _stretch_bytes = _STRETCH_BYTES

    def chunks(self) -> Iterator[Chunk]:
        for decided in self._walk.decided_rows(self._scan):
            if decided:
                yield Chunk(self._walk.table[:decided], self._window)

    def _scan(self) -> int:
        walk, stop = self._walk, DONE
        while stop == DONE and walk.position < self._window.size and walk.rows < TABLE_ROWS:
            stop = self._scan_on()
        return stop

    def _scan_on(self) -> int:
        """Frame the batches in the next stretch that is read, one at least."""
        window = self._window
        if self._walk.position >= window.position + window.filled:
            self._jump()
        position = self._walk.position
        # Reading on to the next header is cheaper than jumping over a small batch.
        size = self._stretch_bytes
        self._stretch_bytes = min(2 * size, _LONGEST_STRETCH_BYTES)
        while True:
            window.load(position, size)
            end = window.position + window.filled
            stop, needed = self._walk.scan_batches(position, end, headers_only=True)
            if stop != MORE_BYTES:
                return stop
            if self._walk.position > position:
                return DONE
            size = min(needed, layout.V2_HEADER_BYTES)

    def _jump(self) -> None:
        """Frame large whole batches, as many as follow each other, by nothing but their headers."""
        walk = self._walk
        room = TABLE_ROWS - walk.rows
        found = kept_at(self._window, walk.position, room)
        if found is None:
            found = self._large_batches(walk.position, room)
            if found is None:
                return
            keep(self._window, found)
        self._stretch_bytes = _STRETCH_BYTES
        set_header_rows(found.headers, found.positions, walk.table, walk.rows)
        walk.rows += len(found.positions)
        walk.position = found.end

    def _large_batches(self, position: int, most: int) -> LargeBatches | None:
        """Read the headers of large whole batches from a position on; None where none is."""
        headers: list[bytes] = []
        positions: list[int] = []
        # As little as possible for each batch: a walk has tens of thousands.
        read, size, header_bytes = self._window.read, self._window.size, layout.V2_HEADER_BYTES
        for _ in range(most):
            header = read(position, header_bytes)
            if len(header) < header_bytes:
                break
            length, magic = layout.LENGTH_AND_MAGIC.unpack_from(header)
            end = position + layout.LOG_OVERHEAD + length
            if not position + _JUMPED_BYTES < end <= size or magic not in layout.MAGICS:
                break
            headers.append(header)
            positions.append(position)
            position = end
        if not headers:
            return None
        data = np.frombuffer(bytearray().join(headers), dtype=np.uint8)
        return LargeBatches(data, np.array(positions), position)
