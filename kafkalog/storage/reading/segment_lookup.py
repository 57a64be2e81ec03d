"""Where in a segment's file an offset is: by its index, as far as that can be believed.

An index is a hint. It can be missing, cut, full of zeros or of garbage, and what is found must be
the same. Rules: docs/format.md F141 and F142.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import MAGICS, computed_crc
from kafkalog.format.offsets import Bounds
from kafkalog.format.side_files.indexes import OFFSET_ENTRY, OffsetEntry
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.recovery.framing import Frame, Readable, frames

_ZEROS_READ = 1024 * 1024
_BEHIND_ALL = 2**63


class OffsetIndexFile:
    """The entries of an `.index` file, each read when it is asked for."""

    def __init__(self, file: Readable | None, base_offset: int) -> None:
        self._file = file
        self._base_offset = base_offset
        self._count = file.size // OFFSET_ENTRY.size if file else 0

    def entry(self, number: int) -> OffsetEntry:
        """An entry; zeros, which are the room for those to come, count as behind all others."""
        if self._file is None:
            raise IndexError(number)
        data = self._file.read(number * OFFSET_ENTRY.size, OFFSET_ENTRY.size)
        relative, position = OFFSET_ENTRY.unpack(data)
        if not any(data):
            return OffsetEntry(_BEHIND_ALL, 0)
        return OffsetEntry(self._base_offset + relative, position)

    def last_not_above(self, offset: int) -> int | None:
        """The number of the last entry that is not above `offset`, found by binary search."""
        number = bisect_right(range(self._count), offset, key=lambda i: self.entry(i).offset)
        return number - 1 if number else None


def checked_frames(file: Readable, position: int, bounds: Bounds) -> Iterator[Frame]:
    """The batches from `position` on, their lengths, magics and offsets as they must be.

    Ends where no whole batch is left. Raises CorruptDataError.
    """
    for frame in frames(file, position):
        header = frame.header
        if header.magic not in MAGICS:
            raise CorruptDataError("magic", f"magic {header.magic}", position=frame.position)
        if not bounds.hold(header):
            detail = f"offsets {header.base_offset} to {header.last_offset}, "
            detail += f"must be from {bounds.expected} on and below {bounds.limit}"
            raise CorruptDataError("offset_order", detail, position=frame.position)
        bounds = Bounds(header.last_offset + 1, bounds.limit)
        yield frame


def start_position(file: Readable, index: OffsetIndexFile, bounds: Bounds, offset: int) -> int:
    """Where to begin to look for the batch with `offset`: at an index entry that can be believed,
    else at the start of the file.

    An entry is believed if a batch begins at its position, with the right checksum and a last
    offset not above the entry's, and if the batches from the entry before it on, or from the start
    of the file, lead to that position.
    """
    try:
        number = index.last_not_above(offset)
        if number is None:
            return 0
        entry = index.entry(number)
        before = index.entry(number - 1).position if number else 0
        if not 0 <= before <= entry.position < file.size:
            return 0
        for frame in checked_frames(file, before, bounds):
            if frame.position >= entry.position:
                is_right = frame.position == entry.position and _is_sound(file, frame, entry)
                return entry.position if is_right else 0
    except CorruptDataError:
        return 0
    return 0


def _is_sound(file: Readable, frame: Frame, entry: OffsetEntry) -> bool:
    """Brokers up to 3.9.0 and 4.0.0 wrote the last offset of several batches appended together
    beside the position of the first of them: such an entry is right."""
    if frame.header.last_offset > entry.offset:
        return False
    return computed_crc(file.read(frame.position, frame.header.size), 0, frame.header) == (
        frame.header.crc
    )


def is_zero_filled(file: Readable, position: int) -> bool:
    """Whether there is nothing but zeros from `position` to the end of the file."""
    while position < file.size:
        if any(file.read(position, _ZEROS_READ)):
            return False
        position += _ZEROS_READ
    return True


@contextmanager
def opened_index(log_path: str, base_offset: int) -> Iterator[OffsetIndexFile]:
    """The index beside a segment's log file, without an entry if there is none."""
    with ExitStack() as stack:
        file = None
        with suppress(FileNotFoundError):
            file = stack.enter_context(InputFile(log_path.removesuffix(".log") + ".index"))
        yield OffsetIndexFile(file, base_offset)
