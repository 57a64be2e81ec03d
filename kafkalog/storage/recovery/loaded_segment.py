"""A segment as a broker has it once it has opened its files: its length and its offset index.

Rules: docs/format.md F117, F118, F971 and F1392.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafkalog.errors import CorruptDataError
from kafkalog.format.faults import Fault
from kafkalog.format.record_batch import read_batch
from kafkalog.format.side_files.indexes import (
    OFFSET_ENTRY,
    OffsetEntry,
    read_offset_index,
    whole_entries,
)
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.recovery.framing import LATEST_FORMAT, Frame, Readable, frames
from kafkalog.storage.recovery.producer_state import BrokerStartError, refuse_unreadable

# What of a compressed batch of format 0 or 1 a broker does not look at, or we do not.
_PASSED = (Fault.RECORD_OFFSETS.label, Fault.TOO_LARGE.label)


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
    been split off another one begins at the position `begin` of that one's file. With
    `reads_wrappers` the broker reads a compressed batch of format 0 or 1 that it finds."""

    base_offset: int
    path: str
    size: int
    offset_entries: list[OffsetEntry] = field(default_factory=list)
    begin: int | None = None
    reads_wrappers: bool = True

    @contextmanager
    def opened(self) -> Iterator[Readable]:
        """Open the file, or the part of it that the segment is."""
        with InputFile(self.path) as file:
            yield file if self.begin is None else FilePart(file, self.begin, self.size)

    def frames_from(self, offset: int, end: int | None = None) -> Iterator[Frame]:
        """Yield the batches from the first on that ends at or after `offset`, found by the index.

        Raises BrokerStartError where the lengths in the file lead nowhere, and where the broker
        cannot read the offset at which the first of them begins.
        """
        index = bisect_right(self.offset_entries, offset, key=lambda entry: entry.offset)
        # A broker takes a position below 0, of a damaged index, for 0.
        position = max(self.offset_entries[index - 1].position if index else 0, 0)
        limit = self.size if end is None else end
        try:
            with self.opened() as file:
                found = False
                for frame in frames(file, position, limit):
                    if not found and frame.header.last_offset >= offset:
                        found = True
                        if self.reads_wrappers:
                            _read_first_offset(file, frame)
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


def _read_first_offset(file: Readable, frame: Frame) -> None:
    """Read the messages in a compressed batch of format 0 or 1. Its first message has the offset at
    which the batch begins. Raises CorruptDataError. Rule: docs/format.md F1392."""
    header = frame.header
    if header.magic >= LATEST_FORMAT or not header.compression_id:
        return
    words = "a broker ends at a compressed batch that it cannot read"
    if header.magic < 0:
        detail = f"magic {header.magic}: {words}"
        raise CorruptDataError(Fault.MAGIC.label, detail, position=frame.position)
    try:
        read_batch(file.read(frame.position, header.size), 0, check_crcs=False)
    except CorruptDataError as error:
        if error.fault not in _PASSED:
            detail = f"{error.detail}: {words}"
            raise CorruptDataError(error.fault, detail, position=frame.position) from error


def read_index_entries(data: bytes, base_offset: int) -> list[OffsetEntry]:
    """Return the entries of an `.index` as a broker takes them: what is not a whole one does not
    count."""
    return read_offset_index(whole_entries(data, OFFSET_ENTRY), base_offset).entries
