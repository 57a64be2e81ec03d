"""Where in a segment offsets and times lie, by the indexes beside it.

An index is only a hint: it can be missing, stale, damaged or of another file. Callers check what
they find there. Rules: docs/format.md F100, F101, F103, F141, F142; docs/options.md F500, F505.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import Self, TypeVar

from kafkalog.errors import CorruptDataError
from kafkalog.format.batch_header import MAGICS, BatchHeader, computed_crc
from kafkalog.format.offsets import LARGEST_OFFSET, Bounds
from kafkalog.format.side_files.indexes import OFFSET_ENTRY, TIME_ENTRY, OffsetEntry, TimeEntry
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.names import segment_file_name
from kafkalog.storage.recovery.framing import Frame, Readable, frames

# Between two entries of an offset index there are more only where it has been cut.
_MOST_BATCHES = 10_000
# What is read of a whole index at a time.
_ENTRIES_AT_A_TIME = 16 * 1024
_ZEROS_READ = 1024 * 1024


class _IndexFile:
    """An index; only the entries that are requested are read.

    Answers are right if the entries rise; if not they are some entries, or none. They are none
    where some of what was looked at cannot be read.
    """

    _entry_struct: Struct
    _offset_field: int

    def __init__(self, path: str, base_offset: int) -> None:
        self._file = InputFile(path)
        self._base_offset = base_offset
        entries = self._file.size // self._entry_struct.size
        # A broker that was not stopped leaves zeros after the entries.
        if entries and self._is_zero(entries - 1):
            entries = bisect_left(range(entries), True, key=self._is_zero)
        self._entries = entries

    def _fields(self, number: int) -> tuple[int, int]:
        size = self._entry_struct.size
        first, second = self._entry_struct.unpack(self._file.read_around(number * size, size))
        return first, second

    def _number_from(self, first_field: int) -> int:
        """Return the first entry that begins with this number or a larger one."""
        return bisect_left(range(self._entries), first_field, key=lambda n: self._fields(n)[0])

    def _is_zero(self, number: int) -> bool:
        return self._fields(number) == (0, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._file.close()

    def last_offset(self) -> int | None:
        """Return the offset of the last entry; None without entries, or where they do not rise."""
        last: tuple[int, ...] = -1, -1
        for entry in self._in_order():
            if entry[0] <= last[0] or entry[1] <= last[1]:
                return None
            last = entry
        is_known = self._entries and not self._file.unreadable
        return self._base_offset + last[self._offset_field] if is_known else None

    def _in_order(self) -> Iterator[tuple[int, ...]]:
        """Yield all entries, some in memory at a time: a sparse file has any size."""
        size = self._entry_struct.size
        for number in range(0, self._entries, _ENTRIES_AT_A_TIME):
            count = min(self._entries - number, _ENTRIES_AT_A_TIME)
            data = self._file.read_around(number * size, count * size)
            yield from self._entry_struct.iter_unpack(data)


class OffsetIndexFile(_IndexFile):
    """An `.index` file."""

    _entry_struct = OFFSET_ENTRY
    _offset_field = 0

    def at_position(self, position: int) -> OffsetEntry | None:
        """Return the last entry that leads to a position or in front of it."""
        entries = range(self._entries)
        return self._entry(bisect_left(entries, position + 1, key=lambda n: self._fields(n)[1]) - 1)

    def below_offset(self, offset: int) -> OffsetEntry | None:
        """Return the last entry of a lesser offset."""
        return self._entry(self._number_from(offset - self._base_offset) - 1)

    def last_two_below(self, offset: int) -> tuple[OffsetEntry | None, OffsetEntry | None]:
        """Return the last entry of a lesser offset, and first the one before it."""
        number = self._number_from(offset - self._base_offset) - 1
        return self._entry(number - 1), self._entry(number)

    def from_offset(self, offset: int) -> OffsetEntry | None:
        """Return the first entry of this offset or a larger one."""
        return self._entry(self._number_from(offset - self._base_offset))

    def _entry(self, number: int) -> OffsetEntry | None:
        if not 0 <= number < self._entries:
            return None
        relative, position = self._fields(number)
        if self._file.unreadable:
            return None
        return OffsetEntry(self._base_offset + relative, position)


class TimeIndexFile(_IndexFile):
    """A `.timeindex` file."""

    _entry_struct = TIME_ENTRY
    _offset_field = 1

    def before_time(self, timestamp_ms: int) -> TimeEntry | None:
        """Return the last entry of an earlier time."""
        number = self._number_from(timestamp_ms) - 1
        if number < 0:
            return None
        latest_ms, relative = self._fields(number)
        if self._file.unreadable:
            return None
        return TimeEntry(latest_ms, self._base_offset + relative)


_Index = TypeVar("_Index", bound=_IndexFile)


def offset_index(log_path: str) -> OffsetIndexFile | None:
    """Return the offset index beside a segment's log file; None where there is none."""
    return _index(log_path, ".index", OffsetIndexFile)


def _index(log_path: str, kind: str, index_class: type[_Index]) -> _Index | None:
    directory, log_name = os.path.split(log_path)
    name = segment_file_name(log_name)
    if name is None or name.kind != ".log":
        return None
    try:
        path = os.path.join(directory, f"{name.stem}{kind}{name.mark}")
        return index_class(path, name.base_offset)
    except FileNotFoundError:
        return None


def last_indexed_offset(log_path: str, base_offset: int) -> int | None:
    """Return the last offset that the indexes beside a segment's log file name, of which
    `base_offset` is the base; None where they name none."""
    name = segment_file_name(os.path.basename(log_path))
    if name is None or name.base_offset != base_offset:
        return None
    found = []
    for kind, index_class in ((".index", OffsetIndexFile), (".timeindex", TimeIndexFile)):
        index = _index(log_path, kind, index_class)
        if index is not None:
            with index:
                found.append(index.last_offset())
    return max((offset for offset in found if offset is not None), default=None)


def start_position(log_path: str, first_offset: int) -> int:
    """Return where a walk may begin that looks for offsets from `first_offset` on; 0 if nothing
    says."""
    name = segment_file_name(os.path.basename(log_path))
    if name is None or not name.base_offset < first_offset < LARGEST_OFFSET:
        return 0
    index = offset_index(log_path)
    if index is None:
        return 0
    with index:
        entry = index.below_offset(first_offset)
    return 0 if entry is None else max(entry.position, 0)


def checked_start(file: Readable, log_path: str, bounds: Bounds, offset: int) -> int:
    """Return where to begin to look for the batch with `offset` in the log file `file`: at an index
    entry that a check confirms, else at the start of the file.

    An entry is right if a batch begins at its position, with the right checksum and a last offset
    not above the entry's, and if the batches from the entry before it on, or from the start of the
    file, lead to that position.
    """
    index = offset_index(log_path)
    if index is None:
        return 0
    with index:
        before, entry = index.last_two_below(offset + 1)
    start = before.position if before else 0
    if entry is None or not 0 <= start <= entry.position < file.size:
        return 0
    try:
        for frame in checked_frames(file, start, bounds):
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
    computed = computed_crc(file.read(frame.position, frame.header.size), 0, frame.header)
    return computed == frame.header.crc


def checked_frames(file: Readable, position: int, bounds: Bounds) -> Iterator[Frame]:
    """Yield the batches from `position` on, their lengths, magics and offsets as they must be.

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


def is_zero_filled(file: Readable, position: int) -> bool:
    """Return whether there is nothing but zeros from `position` to the end of the file."""
    while position < file.size:
        if any(file.read(position, _ZEROS_READ)):
            return False
        position += _ZEROS_READ
    return True


def first_offset_from(log_path: str, timestamp_ms: int) -> int:
    """Return an offset below which no record of a segment has this timestamp or a later one, by its
    time index; 0 where nothing says.

    What an entry says holds for all batches up to its own, also where later entries are missing.
    It is believed if the batch of its offset has its time. Rule: docs/options.md F505.
    """
    index = _index(log_path, ".timeindex", TimeIndexFile)
    if index is None:
        return 0
    with index:
        entry = index.before_time(timestamp_ms)
    if entry is None:
        return 0
    try:
        with InputFile(log_path) as file:
            header = _batch_of(file, entry.offset, start_position(log_path, entry.offset + 1))
    except FileNotFoundError:
        return 0
    if header is None or header.max_timestamp_ms != entry.timestamp_ms:
        return 0
    return header.last_offset + 1


def _batch_of(file: InputFile, offset: int, position: int) -> BatchHeader | None:
    """Return the header of the batch that has an offset, looked for from a position on."""
    try:
        for frame in islice(frames(file, position), _MOST_BATCHES):
            if frame.header.last_offset >= offset:
                is_in = frame.header.magic < 2 or frame.header.base_offset <= offset
                return frame.header if is_in else None
    except CorruptDataError:
        pass  # no batch then
    return None
