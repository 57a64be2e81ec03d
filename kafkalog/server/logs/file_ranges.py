"""Bytes of files that responses hold without reading them, and bytes that were made."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from kafkalog.storage.files.files import InputFile
from kafkalog.storage.files.regular_files import open_regular
from kafkalog.storage.files.tiered_chunks import tiered_manifest_path
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.reading.renamed_files import current_path


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes [position, end) of a file."""

    path: str
    position: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.position

    @property
    def is_plain(self) -> bool:
        """Whether the bytes lie in a local file as they are, so that the kernel can send them."""
        return not is_remote(self.path) and tiered_manifest_path(self.path) is None


def open_plain(path: str) -> BinaryIO:
    """Return a local file under its name or the one that a broker has given it since, for sending.
    Raises FileNotFoundError where it was deleted, or is not a regular file now."""
    return os.fdopen(open_regular(current_path(path) or path), "rb")


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """Bytes that no file has."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


Range = FileRange | MemoryRange


class FileRanges:
    """Ranges, one after another: the raw batches of a partition in a response."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self.ranges = _joined(ranges)
        self._size = sum(each.size for each in self.ranges)

    def __len__(self) -> int:
        return self._size

    @property
    def bytes_in_memory(self) -> int:
        """How many of the bytes no file has."""
        return sum(each.size for each in self.ranges if isinstance(each, MemoryRange))

    def read(self) -> bytes:
        """Return the bytes."""
        parts = []
        for each in self.ranges:
            if isinstance(each, MemoryRange):
                parts.append(each.data)
                continue
            with InputFile(each.path) as file:
                parts.append(file.read(each.position, each.size))
        return b"".join(parts)


def _joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the ranges, those of a file that touch as one."""
    found: list[Range] = []
    for each in ranges:
        last = found[-1] if found else None
        if (
            isinstance(last, FileRange)
            and isinstance(each, FileRange)
            and (last.path, last.end) == (each.path, each.position)
        ):
            found[-1] = FileRange(last.path, last.position, each.end)
        else:
            found.append(each)
    return tuple(found)
