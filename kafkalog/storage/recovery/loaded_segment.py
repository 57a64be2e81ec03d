"""A segment as a broker has it once it has opened its files: its length and its offset index.

Rules: docs/format.md F117, F118 and F971.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.indexes import (
    OFFSET_ENTRY,
    OffsetEntry,
    read_offset_index,
    whole_entries,
)
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.recovery.framing import Frame, Readable, frames
from kafkalog.storage.recovery.producer_state import BrokerStartError, refuse_unreadable


class FilePart:
    """The bytes of a file from a position on, as a file of its own."""

    def __init__(self, file: InputFile, begin: int, size: int) -> None:
        self._file = file
        self._begin = begin
        self.size = size

    def read(self, position: int, size: int) -> bytes:
        """Return bytes, as `InputFile` does."""
        return self._file.read(self._begin + position, min(size, self.size - position))


@dataclass(slots=True)
class LoadedSegment:
    """`size` is how much of the file counts: less than all of it after a cut. A segment that has
    been split off another one begins at the position `begin` of that one's file."""

    base_offset: int
    path: str
    size: int
    offset_entries: list[OffsetEntry] = field(default_factory=list)
    begin: int | None = None

    @contextmanager
    def opened(self) -> Iterator[Readable]:
        """Open the file, or the part of it that the segment is."""
        with InputFile(self.path) as file:
            yield file if self.begin is None else FilePart(file, self.begin, self.size)

    def frames_from(self, offset: int, end: int | None = None) -> Iterator[Frame]:
        """Yield the batches from the first on that ends at or after `offset`, found by the index.

        Raises BrokerStartError where the lengths in the file lead nowhere.
        """
        index = bisect_right(self.offset_entries, offset, key=lambda entry: entry.offset)
        # A broker takes a position below 0, of a damaged index, for 0.
        position = max(self.offset_entries[index - 1].position if index else 0, 0)
        limit = self.size if end is None else end
        try:
            with self.opened() as file:
                found = False
                for frame in frames(file, position, limit):
                    found = found or frame.header.last_offset >= offset
                    if found:
                        yield frame
        except CorruptDataError as error:
            refuse_unreadable(error)
            raise BrokerStartError(
                f"{self.path}: position {error.position}: {error.detail}"
            ) from error

    def position_of(self, offset: int) -> int | None:
        """Return where the first batch begins that ends at or after `offset`."""
        first = next(self.frames_from(offset), None)
        return None if first is None else first.position

    def next_offset(self) -> int:
        """Return the offset after the last batch, looked for after the last entry of the index."""
        last = self.offset_entries[-1].offset if self.offset_entries else self.base_offset
        next_offset = self.base_offset
        for frame in self.frames_from(last):
            next_offset = frame.header.last_offset + 1
        return next_offset


def read_index_entries(data: bytes, base_offset: int) -> list[OffsetEntry]:
    """Return the entries of an `.index` as a broker takes them: what is not a whole one does not
    count."""
    return read_offset_index(whole_entries(data, OFFSET_ENTRY), base_offset).entries
