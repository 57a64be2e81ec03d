"""The log files that a task has written, each read once: its checksum, and whether it is sound. Who
judges the result, and the manifest, need not read them again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from kafkalog.columns.batches.byte_ranges import VALID
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.records.segment_reader import SegmentByteRanges
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.names import any_base_offset
from kafkalog.storage.partition_log import SoundFile
from kafkalog.wire.checksums import crc32c

_READ_BYTES = 8 * 1024 * 1024


class ReadBack(NamedTuple):
    """A log file as it was read back: its size, its CRC-32C, and what it has, None for one with any
    finding."""

    size: int
    checksum: int
    sound: SoundFile | None

    @property
    def facts(self) -> tuple[int, str]:
        """Size and CRC-32C, as a manifest has them."""
        return self.size, f"{self.checksum:08x}"


def read_back(
    directory: str, next_base_offset: int | None, *, is_compacted: bool
) -> Iterator[tuple[str, ReadBack]]:
    """Yield the log files in a directory by their names, those apart that cannot be read. The log
    goes on at `next_base_offset`, None for one that ends in this directory. Raises OSError."""
    names = sorted(name for name in os.listdir(directory) if name.endswith(".log"))
    bases = [any_base_offset(name) for name in names]
    for name, base, following in zip(names, bases, [*bases[1:], next_base_offset], strict=True):
        with InputFile(os.path.join(directory, name)) as file:
            found = _read(file, SegmentOptions(base, following), is_compacted=is_compacted)
            if not file.unreadable:
                yield name, found


def _read(file: InputFile, options: SegmentOptions, *, is_compacted: bool) -> ReadBack:
    source = _Checksummed(file)
    ranges = SegmentByteRanges(FileWindow(source), options, is_compacted=is_compacted)
    rows = iter(ranges.rows())
    first = next(rows)
    is_sound = next(rows, None) is None and first["verdict"] == VALID and not first.get("kind")
    is_sound = is_sound and first["length"] == file.size > 0
    fields: list[Any] = [first[name] for name in SoundFile._fields[1:]] if is_sound else []
    sound = SoundFile(file.size, *fields) if is_sound else None
    return ReadBack(file.size, source.checksum(), sound)


class _Checksummed:
    """A file whose checksum is that of the bytes that are read on the way through it."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self.size = file.size
        self._end = 0
        self._checksum = 0

    @property
    def unreadable(self) -> UnreadableRanges:
        return self._file.unreadable

    def read_around(self, position: int, size: int) -> bytes:
        return self._file.read_around(position, size)

    def read_into(self, position: int, target: memoryview) -> None:
        self._file.read_into(position, target)
        if position <= self._end < position + len(target):
            self._checksum = crc32c(target[self._end - position :], self._checksum)
            self._end = position + len(target)

    def checksum(self) -> int:
        """Return the checksum of the file, after reading what was not read."""
        while data := self._file.read_around(self._end, _READ_BYTES):
            self._checksum = crc32c(data, self._checksum)
            self._end += len(data)
        return self._checksum
