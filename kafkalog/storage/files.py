"""The one place that lists directories and opens files, always for reading."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from types import TracebackType

from kafkalog.errors import KafkaLogError


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in a directory; `size` is 0 for a directory."""

    name: str
    path: str
    is_directory: bool
    size: int


def list_directory(path: str) -> list[Entry]:
    """What is in a directory, sorted by name. Files that vanish meanwhile are left out."""
    entries: list[Entry] = []
    with os.scandir(path) as found:
        for entry in found:
            try:
                is_directory = entry.is_dir()
                size = 0 if is_directory else entry.stat().st_size
            except FileNotFoundError:
                continue
            entries.append(Entry(entry.name, entry.path, is_directory, size))
    return sorted(entries, key=lambda entry: entry.name)


def matching_paths(pattern: str) -> list[str]:
    """The path itself if it exists, else what it matches as a glob; absolute, sorted."""
    matches = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
    return [os.path.abspath(path) for path in matches if os.path.exists(path)]


def read_text(path: str) -> str | None:
    """A small text file, None if there is none. Bytes that are not UTF-8 are replaced."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None


def read_bytes(path: str) -> bytes:
    """A small file."""
    with open(path, "rb") as file:
        return file.read()


def modified_ms(path: str) -> int:
    """When a file was last written, in milliseconds."""
    return os.stat(path).st_mtime_ns // 1_000_000


class InputFile:
    """A local file of a size fixed when it was opened: an active segment may grow meanwhile."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self.size = os.fstat(self._descriptor).st_size

    def read(self, position: int, size: int) -> bytes:
        """The bytes from `position`, fewer than `size` only at the end of the file."""
        wanted = max(min(size, self.size - position), 0)
        data = os.pread(self._descriptor, wanted, position)
        if len(data) == wanted:
            return data
        filled = bytearray(wanted)
        self.read_into(position, memoryview(filled))
        return bytes(filled)

    def read_into(self, position: int, target: memoryview) -> None:
        """Fill `target` with the bytes from `position`."""
        filled = 0
        while filled < len(target):
            count = os.preadv(self._descriptor, [target[filled:]], position + filled)
            if count == 0:
                raise KafkaLogError(
                    f"{self.path} ends at {position + filled} now, it had {self.size} bytes when "
                    "it was opened: it was cut while being read; read it again"
                )
            filled += count

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> InputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
