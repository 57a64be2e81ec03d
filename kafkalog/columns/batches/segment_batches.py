"""A segment as a stream of batch tables with the bytes they speak of: the fast reader's first half.

Gives the same account as `kafkalog.format.segment.read_ranges`, a piece at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kafkalog.columns.batches.batch_table import (
    COMPUTED_CRC,
    EXPECTED_OFFSET,
    FAULT,
    MAGIC,
    POSITION,
    SIZE,
    new_table,
    set_header,
)
from kafkalog.columns.batches.offset_plausibility import (
    EXPECTED,
    LIMIT,
    WAITING,
    forget_rows,
    judge_rows,
    new_belief,
    settle,
    undecided_row,
)
from kafkalog.columns.batches.scan import (
    DONE,
    MORE_BYTES,
    NOT_COMPUTED,
    first_mismatch,
    scan_batches,
    set_header_rows,
)
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.walk_start import may_begin_at
from kafkalog.columns.batches.window import Window, WindowBytes
from kafkalog.columns.jit.compiled import ByteArray, LongArray
from kafkalog.format.batch_header import (
    LEGACY_CHECKSUM_START,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGICS,
    V2_CHECKSUM_START,
    V2_HEADER_BYTES,
    read_header,
    read_length,
)
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET, Bounds, offset_bounds
from kafkalog.format.resync import Damage, Finder
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.wire.checksums import crc32, crc32c

# About what a core's second-level cache holds, so that bytes are still there when the records are
# taken from what the checksum has just read (docs/decisions/0003-codecs-and-chunks.md).
CHUNK_BYTES = 4 * 1024 * 1024
LEAST_CHUNK_BYTES = 4 * 1024
# What is asked of part of a segment may end soon: there, chunks double from here on.
_FIRST_CHUNK_BYTES = 128 * 1024
TABLE_ROWS = 4 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a batch table in file order and, for sound batches, their bytes: the byte at file
    position p is `data[p - data_position]`. Valid until the next chunk is asked for."""

    data: ByteArray
    data_position: int
    table: LongArray
    unreadable: UnreadableRanges


class SegmentBatches:
    """Walks one segment. Iterate over `chunks()` once."""

    def __init__(self, window: Window, options: SegmentOptions) -> None:
        self._window = window
        self._options = options
        self._finder = Finder(WindowBytes(window))
        self._table = new_table(TABLE_ROWS)
        self._rows = 0  # rows of the table in use: undecided ones, and new ones behind them
        self._position = 0  # where framing goes on
        is_part = options.end_offset < LARGEST_OFFSET or options.start_position > 0
        ends_early = is_part and options.next_position is None
        self._chunk_bytes = _FIRST_CHUNK_BYTES if ends_early else CHUNK_BYTES
        self._belief = new_belief(offset_bounds(options.base_offset, options.next_base_offset))
        first = may_begin_at(window, options) if options.start_position else None
        if first is not None:
            self._position = options.start_position
            self._belief[EXPECTED] = first.base_offset

    @property
    def next_offset(self) -> int:
        """One more than the last offset believed so far."""
        return int(self._belief[EXPECTED])

    def walk(self) -> int:
        """Walk what `chunks` would give, and return `next_offset`."""
        for _ in self.chunks():
            pass
        return self.next_offset

    def chunks(self) -> Iterator[Chunk]:
        """All ranges of the segment, or those up to where `end_offset` is reached."""
        while self._position < self._window.size:
            self._advance()
            yield from self._decided(int(undecided_row(self._rows, self._belief)))
            if self._has_reached_end():
                return
        settle(self._table, self._rows, self._belief)
        yield from self._decided(self._rows)

    def _has_reached_end(self) -> bool:
        """Whether all asked offsets have been handed out. A batch that only its leader epoch keeps
        back may hold some; one whose offsets are not believed comes after them."""
        end_offset = self._options.end_offset
        if self._belief[EXPECTED] < end_offset:
            return False
        if self._position < (self._options.next_position or 0):
            return False
        is_kept_back = self._rows > 0 and self._belief[WAITING] != 0
        return not is_kept_back or bool(self._table[0, EXPECTED_OFFSET] >= end_offset)

    def _advance(self) -> None:
        """Frame, check and judge as much as fits a chunk."""
        row, stop = self._rows, self._scan()
        self._compute_checksums(row)
        while row < self._rows:
            bad = self._first_bad(row)
            judge_rows(self._table, row, bad, self._belief)
            if bad == self._rows:
                break
            damages = self._damages(int(self._table[bad, POSITION]), Fault.CHECKSUM)
            if _is_one_batch(damages, self._table[bad]):
                self._set_damage(bad, damages[0])
                row = bad + 1
            else:
                self._rows, stop = bad, DONE
                self._append(damages)
                self._chunk_bytes = LEAST_CHUNK_BYTES
                return
        if stop == DONE:
            self._chunk_bytes = min(2 * self._chunk_bytes, CHUNK_BYTES)
            return
        # Where framing is lost, what was read ahead is of no use: go on with little.
        self._chunk_bytes = LEAST_CHUNK_BYTES
        if stop == Fault.TOO_LARGE:
            self._append_too_large()
        else:
            self._append(self._damages(self._position, Fault(stop)))

    def _first_bad(self, row: int) -> int:
        """The first row from `row` on with a wrong checksum or unreadable bytes, or the end."""
        bad = int(first_mismatch(self._table, row, self._rows))
        if row == bad or not self._window.unreadable:
            return bad
        ends = self._table[row:bad, POSITION] + self._table[row:bad, SIZE]
        hidden = self._window.unreadable.within(int(self._table[row, POSITION]), int(ends[-1]))
        return row + int(np.searchsorted(ends, hidden[0].position, "right")) if hidden else bad

    def _scan(self) -> int:
        """Frame batches into new rows; DONE, or the fault that ended it."""
        window, position, size = self._window, self._position, self._chunk_bytes
        # Of what lies behind this part its last batch is wanted, no chunk.
        left = (self._options.next_position or window.size) - position
        if 0 < left < size:
            size = max(left, LEAST_CHUNK_BYTES)
        while True:
            kept = self._kept_position()
            window.load(kept, position - kept + size)
            self._rows, index, stop, needed = scan_batches(
                window.data,
                position - window.position,
                min(position + size - window.position, window.filled),
                window.position,
                window.size,
                self._table,
                self._rows,
                self._options.max_batch_bytes,
                False,
            )
            self._position = window.position + index
            if stop != MORE_BYTES:
                return int(stop)
            if self._position > position:
                return DONE
            size = needed

    def _kept_position(self) -> int:
        """From where on bytes are still needed: undecided batches are, unless far behind."""
        first = int(self._table[0, POSITION]) if self._rows else self._position
        return first if self._position - first <= CHUNK_BYTES else self._position

    def _compute_checksums(self, first_row: int) -> None:
        """Set the computed checksum of all new rows that are asked for."""
        if not self._options.check_crcs:
            return
        rows = self._table[first_row : self._rows]
        data = self._window.data.data
        starts = rows[:, POSITION] - self._window.position
        ends = (starts + rows[:, SIZE]).tolist()
        if (rows[:, MAGIC] == 2).all():
            starts += V2_CHECKSUM_START
            computed = [crc32c(data[i:j]) for i, j in zip(starts.tolist(), ends, strict=True)]
        else:
            skipped = np.where(rows[:, MAGIC] == 2, V2_CHECKSUM_START, LEGACY_CHECKSUM_START)
            functions = [crc32c if magic == 2 else crc32 for magic in rows[:, MAGIC].tolist()]
            places = zip((starts + skipped).tolist(), ends, functions, strict=True)
            computed = [function(data[i:j]) for i, j, function in places]
        rows[:, COMPUTED_CRC] = computed

    def _damages(self, position: int, fault: Fault) -> list[Damage]:
        bounds = Bounds(int(self._belief[EXPECTED]), int(self._belief[LIMIT]))
        return self._finder.damaged_stretch(position, fault, bounds)

    def _append(self, damages: list[Damage]) -> None:
        for damage in damages:
            self._make_room()
            self._rows += 1
            self._set_damage(self._rows - 1, damage)
            self._position = damage.end

    def _append_too_large(self) -> None:
        """A batch that is framed and not taken into memory; its checksum is taken in passing."""
        header = read_header(self._window.read(self._position, V2_HEADER_BYTES), 0)
        crc = NOT_COMPUTED
        end = self._position + header.size
        if self._options.check_crcs:
            crc = self._finder.computed_crc(self._position, header)
        is_wrong = crc not in (header.crc, NOT_COMPUTED)
        if is_wrong or self._window.unreadable.overlap(self._position, end):
            self._append(self._damages(self._position, Fault.CHECKSUM))
            return
        self._append([Damage(self._position, end, Fault.TOO_LARGE, header, crc)])

    def _set_damage(self, row: int, damage: Damage) -> None:
        self._table[row] = 0
        self._table[row, POSITION] = damage.position
        self._table[row, SIZE] = damage.end - damage.position
        self._table[row, FAULT] = damage.fault
        self._table[row, COMPUTED_CRC] = NOT_COMPUTED
        if damage.computed_crc is not None:
            self._table[row, COMPUTED_CRC] = damage.computed_crc
        if damage.header is not None:
            set_header(self._table[row], damage.header)
        judge_rows(self._table, row, row + 1, self._belief)

    def _make_room(self) -> None:
        if self._rows == len(self._table):
            self._table = np.concatenate((self._table, new_table(TABLE_ROWS)))

    def _decided(self, decided: int) -> Iterator[Chunk]:
        """Hand out the first `decided` rows, then forget them."""
        window = self._window
        rows = self._table[:decided]
        if decided and (
            rows[0, POSITION] < window.position
            or rows[-1, POSITION] + rows[-1, SIZE] > window.position + window.filled
        ):
            for row in range(decided):
                position, size = rows[row, POSITION].item(), rows[row, SIZE].item()
                if rows[row, FAULT] == 0:
                    window.load(position, size)
                    # It could be read a moment ago, when it was judged.
                    if window.unreadable.overlap(position, position + size):
                        rows[row, FAULT] = Fault.UNREADABLE
                yield self._chunk(rows[row : row + 1])
        elif decided:
            yield self._chunk(rows)
        self._forget(decided)

    def _chunk(self, rows: LongArray) -> Chunk:
        window = self._window
        return Chunk(window.data, window.position, rows, window.unreadable)

    def _forget(self, decided: int) -> None:
        self._table[: self._rows - decided] = self._table[decided : self._rows].copy()
        self._rows -= decided
        forget_rows(self._belief, decided)


class SegmentHeaders(SegmentBatches):
    """Walks one segment by its batch headers alone: payloads are neither read nor checked, and the
    chunks' tables are all there is to them."""

    def _scan(self) -> int:
        stop = DONE
        while stop == DONE and self._position < self._window.size and self._rows < TABLE_ROWS:
            stop = self._scan_on()
        return stop

    def _scan_on(self) -> int:
        """Frame the batches in the next stretch that is read, one at least."""
        window = self._window
        if self._position >= window.position + window.filled:
            self._jump()
        position = self._position
        # Reading on to the next header is cheaper than jumping over a small batch.
        size = LEAST_CHUNK_BYTES
        while True:
            window.load(position, size)
            self._rows, index, stop, needed = scan_batches(
                window.data,
                position - window.position,
                window.filled,
                window.position,
                window.size,
                self._table,
                self._rows,
                window.size,
                True,
            )
            self._position = window.position + index
            if stop != MORE_BYTES:
                return int(stop)
            if self._position > position:
                return DONE
            size = min(int(needed), V2_HEADER_BYTES)

    def _jump(self) -> None:
        """Frame large whole batches, as many as follow each other, by nothing but their headers."""
        headers: list[bytes] = []
        positions: list[int] = []
        position, room = self._position, TABLE_ROWS - self._rows
        while len(headers) < room:
            header = self._window.read(position, V2_HEADER_BYTES)
            length = read_length(header)
            end = position + LOG_OVERHEAD + length
            is_large = end - position > LEAST_CHUNK_BYTES and end <= self._window.size
            if not is_large or header[MAGIC_POSITION] not in MAGICS:
                break
            headers.append(header)
            positions.append(position)
            position = end
        if headers:
            data = np.frombuffer(bytearray().join(headers), dtype=np.uint8)
            set_header_rows(data, np.array(positions), self._table, self._rows)
            self._rows += len(headers)
            self._position = position

    def _compute_checksums(self, first_row: int) -> None:
        """None is computed."""

    def _decided(self, decided: int) -> Iterator[Chunk]:
        if decided:
            yield Chunk(self._window.data, 0, self._table[:decided], self._window.unreadable)
        self._forget(decided)


def _is_one_batch(damages: list[Damage], row: LongArray) -> bool:
    """Whether the damage is confined to the batch of this row, the framing unhurt."""
    return (
        len(damages) == 1
        and damages[0].header is not None
        and damages[0].end == row[POSITION] + row[SIZE]
    )
