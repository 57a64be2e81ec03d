"""The walk through a segment's batches: which of them are sound, and where to go on after damage.

`segment_batches` frames the batches for it: whole ones, or their headers alone.

1. Every byte from the first position to the last belongs to exactly one row of a batch table: a
   sound batch, or a range with a fault.
2. Rows rise by position. Offsets of sound batches rise too; one that does not fit is a fault.
3. A row is final when it is handed out, but for offsets that later rows decide: the walk keeps
   those back until they are decided.
4. After a fault the walk goes on where a batch can begin, at the latest at the end of the file.
5. Each byte is read once, and looked at a bounded number of times, whatever it contains.
6. The tables, and the bytes that they point to, are overwritten by the next chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from kafkalog.columns.batches import batch_table as column
from kafkalog.columns.batches.batch_table import new_table, set_header
from kafkalog.columns.batches.offset_plausibility import (
    EXPECTED,
    LIMIT,
    PENDING,
    check_rows,
    decide_all,
    forget_rows,
    new_state,
    undecided_row,
)
from kafkalog.columns.batches.scan import DONE, NOT_COMPUTED, Stretch, first_mismatch, scan_batches
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import Window, WindowBytes
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.batch_header import V2_HEADER_BYTES, BatchHeader, read_header
from kafkalog.format.faults import Fault
from kafkalog.format.offsets import LARGEST_OFFSET, Bounds, offset_bounds
from kafkalog.format.resync import Damage, Finder

# About what a core's second-level cache holds, so that bytes are still there when the records are
# taken from what the checksum has just read (docs/decisions/0003-codecs-and-chunks.md).
CHUNK_BYTES = 4 * 1024 * 1024
LEAST_CHUNK_BYTES = 4 * 1024
# A read of part of a segment may end soon: there, chunks double from here on.
_FIRST_CHUNK_BYTES = 128 * 1024
TABLE_ROWS = 4 * 1024


class SegmentWalk:
    """The rows of batches that are framed and not handed out yet, and where framing goes on.

    `table[:rows]` are in use: undecided rows, then new ones. `position` is where framing goes on in
    the file, `chunk_bytes` how much to read at a time.
    """

    def __init__(self, window: Window, options: SegmentOptions) -> None:
        self.table = new_table(TABLE_ROWS)
        self.rows = 0
        self.position = 0
        self._window = window
        self._options = options
        self._finder = Finder(WindowBytes(window))
        is_part = options.end_offset < LARGEST_OFFSET or options.start_position > 0
        ends_early = is_part and options.next_position is None
        self.chunk_bytes = _FIRST_CHUNK_BYTES if ends_early else CHUNK_BYTES
        self._state = new_state(offset_bounds(options.base_offset, options.next_base_offset))
        first = may_begin_at(window, options) if options.start_position else None
        if first is not None:
            self.position = options.start_position
            self._state[EXPECTED] = first.base_offset

    @property
    def next_offset(self) -> int:
        """One more than the last offset that is confirmed so far."""
        return int(self._state[EXPECTED])

    def decided_rows(
        self, scan: Callable[[], int], compute_checksums: Callable[[int], None] | None = None
    ) -> Iterator[int]:
        """Yield how many rows are decided, again and again, up to the end of the file or to where
        `end_offset` is reached. They are forgotten when the next number is taken.

        `scan` frames batches into new rows and returns DONE, or the fault that ended it;
        `compute_checksums` is called with the first of them.
        """
        while self.position < self._window.size:
            first_row = self.rows
            stop = scan()
            if compute_checksums is not None:
                compute_checksums(first_row)
            self._check(first_row, stop)
            decided = int(undecided_row(self.rows, self._state))
            yield decided
            self._forget(decided)
            if self._has_reached_end():
                return
        decide_all(self.table, self.rows, self._state)
        yield self.rows
        self._forget(self.rows)

    def scan_batches(self, start: int, end: int, *, headers_only: bool) -> tuple[int, int]:
        """Frame the batches of a stretch of the file that is in the window, and return why framing
        stopped and how many bytes the next batch needs. Large batches end it, but by headers."""
        window = self._window
        stretch = Stretch(
            start - window.position, end - window.position, window.position, window.size
        )
        most_bytes = window.size if headers_only else self._options.max_batch_bytes
        self.rows, index, stop, needed = scan_batches(
            window.data, stretch, self.table, self.rows, most_bytes, headers_only
        )
        self.position = window.position + index
        return int(stop), int(needed)

    def _has_reached_end(self) -> bool:
        """Return whether all requested offsets have been handed out. A batch that only its leader
        epoch keeps back may hold some; one whose offsets are not confirmed comes after them."""
        end_offset = self._options.end_offset
        if self._state[EXPECTED] < end_offset:
            return False
        if self.position < (self._options.next_position or 0):
            return False
        is_kept_back = self.rows > 0 and self._state[PENDING] != 0
        return not is_kept_back or bool(self.table[0, column.EXPECTED_OFFSET] >= end_offset)

    def _check(self, row: int, stop: int) -> None:
        """Check the new rows from `row` on; where framing stopped, or a checksum is wrong, append
        the damage."""
        while row < self.rows:
            bad = self._first_bad(row)
            check_rows(self.table, row, bad, self._state)
            if bad == self.rows:
                break
            damages = self._damages(int(self.table[bad, column.POSITION]), Fault.CHECKSUM)
            if _is_one_batch(damages, self.table[bad]):
                self._set_damage(bad, damages[0])
                row = bad + 1
            else:
                self.rows = bad
                self._append(damages)
                self.chunk_bytes = LEAST_CHUNK_BYTES
                return
        if stop == DONE:
            self.chunk_bytes = min(2 * self.chunk_bytes, CHUNK_BYTES)
            return
        # Where framing is lost, what was read ahead is of no use: go on with little.
        self.chunk_bytes = LEAST_CHUNK_BYTES
        if stop == Fault.TOO_LARGE:
            self._append_too_large()
        else:
            self._append(self._damages(self.position, Fault(stop)))

    def _first_bad(self, row: int) -> int:
        """Return the first row from `row` on with a wrong checksum or unreadable bytes, or the
        end."""
        bad = int(first_mismatch(self.table, row, self.rows))
        if row == bad or not self._window.unreadable:
            return bad
        ends = self.table[row:bad, column.POSITION] + self.table[row:bad, column.SIZE]
        hidden = self._window.unreadable.within(
            int(self.table[row, column.POSITION]), int(ends[-1])
        )
        return row + int(np.searchsorted(ends, hidden[0].position, "right")) if hidden else bad

    def _damages(self, position: int, fault: Fault) -> list[Damage]:
        bounds = Bounds(int(self._state[EXPECTED]), int(self._state[LIMIT]))
        return self._finder.damaged_stretch(position, fault, bounds)

    def _append(self, damages: list[Damage]) -> None:
        for damage in damages:
            self._make_room()
            self.rows += 1
            self._set_damage(self.rows - 1, damage)
            self.position = damage.end

    def _append_too_large(self) -> None:
        """A batch that is framed and not taken into memory; its checksum is taken in passing."""
        header = read_header(self._window.read(self.position, V2_HEADER_BYTES), 0)
        crc = NOT_COMPUTED
        end = self.position + header.size
        if self._options.check_crcs:
            crc = self._finder.computed_crc(self.position, header)
        is_wrong = crc not in (header.crc, NOT_COMPUTED)
        if is_wrong or self._window.unreadable.overlap(self.position, end):
            self._append(self._damages(self.position, Fault.CHECKSUM))
            return
        self._append([Damage(self.position, end, Fault.TOO_LARGE, header, crc)])

    def _set_damage(self, row: int, damage: Damage) -> None:
        self.table[row] = 0
        self.table[row, column.POSITION] = damage.position
        self.table[row, column.SIZE] = damage.end - damage.position
        self.table[row, column.FAULT] = damage.fault
        self.table[row, column.COMPUTED_CRC] = NOT_COMPUTED
        if damage.computed_crc is not None:
            self.table[row, column.COMPUTED_CRC] = damage.computed_crc
        if damage.header is not None:
            set_header(self.table[row], damage.header)
        check_rows(self.table, row, row + 1, self._state)

    def _make_room(self) -> None:
        if self.rows == len(self.table):
            self.table = np.concatenate((self.table, new_table(TABLE_ROWS)))

    def _forget(self, decided: int) -> None:
        self.table[: self.rows - decided] = self.table[decided : self.rows].copy()
        self.rows -= decided
        forget_rows(self._state, decided)


def _is_one_batch(damages: list[Damage], row: LongArray) -> bool:
    """Return whether the damage is confined to the batch of this row, the framing unhurt."""
    return (
        len(damages) == 1
        and damages[0].header is not None
        and damages[0].end == row[column.POSITION] + row[column.SIZE]
    )


def may_begin_at(window: Window, options: SegmentOptions) -> BatchHeader | None:
    """Return the header of the batch at `start_position`, if a walk from there finds what one from
    the start of the file does: a sound batch that begins below the first requested offset, and
    after it its successor, so that no offset is in doubt. Rule: docs/options.md F500."""
    position = options.start_position
    finder = Finder(WindowBytes(window))
    bounds = offset_bounds(options.base_offset, options.next_base_offset)
    first = finder.sound(position, bounds) if 0 < position < window.size else None
    if first is None or first.base_offset >= options.first_offset:
        return None
    if first.size > options.max_batch_bytes:
        return None
    end = position + first.size
    next_bounds = Bounds(first.last_offset + 1, bounds.limit)
    is_followed = end == window.size or finder.sound(end, next_bounds) is not None
    return first if is_followed else None
