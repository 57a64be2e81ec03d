"""Where in a segment's file offsets lie, by the offset index beside it.

What it says are hints: an index can be missing, stale, damaged or of another file. Who goes by one
checks what is there. Rules: docs/format.md F100, F103; docs/options.md F500.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from types import TracebackType

from kafkalog.format.indexes import OFFSET_ENTRY, OffsetEntry
from kafkalog.format.segment import LARGEST_OFFSET
from kafkalog.storage.files import InputFile
from kafkalog.storage.names import segment_file_name


class OffsetIndexFile:
    """An `.index` file of which only the entries that are asked for are read.

    Answers are right if the entries rise; if not they are some entries, or none.
    """

    def __init__(self, path: str, base_offset: int) -> None:
        self._file = InputFile(path)
        self._base_offset = base_offset
        entries = self._file.size // OFFSET_ENTRY.size
        # A broker that was not stopped leaves zeros behind the entries.
        is_padded = entries > 0 and self._is_zero(entries - 1)
        self._entries = (
            bisect_left(range(entries), True, key=self._is_zero) if is_padded else entries
        )

    def at_position(self, position: int) -> OffsetEntry | None:
        """The last entry that leads to a position or in front of it."""
        return self._before(bisect_left(range(self._entries), position + 1, key=self._position))

    def below_offset(self, offset: int) -> OffsetEntry | None:
        """The last entry of a lesser offset."""
        return self._before(bisect_left(range(self._entries), offset, key=self._offset))

    def from_offset(self, offset: int) -> OffsetEntry | None:
        """The first entry of this offset or a larger one."""
        return self._before(bisect_left(range(self._entries), offset, key=self._offset) + 1)

    def _before(self, number: int) -> OffsetEntry | None:
        return self._entry(number - 1) if 0 < number <= self._entries else None

    def _entry(self, number: int) -> OffsetEntry:
        data = self._file.read(number * OFFSET_ENTRY.size, OFFSET_ENTRY.size)
        relative, position = OFFSET_ENTRY.unpack(data)
        return OffsetEntry(self._base_offset + relative, position)

    def _offset(self, number: int) -> int:
        return self._entry(number).offset

    def _position(self, number: int) -> int:
        return self._entry(number).position

    def _is_zero(self, number: int) -> bool:
        return self._entry(number) == (self._base_offset, 0)

    def __enter__(self) -> OffsetIndexFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


def offset_index(log_path: str) -> OffsetIndexFile | None:
    """The index beside a segment's log file; None where there is none."""
    directory, log_name = os.path.split(log_path)
    name = segment_file_name(log_name)
    if name is None or name.kind != ".log":
        return None
    try:
        path = os.path.join(directory, f"{name.stem}.index{name.mark}")
        return OffsetIndexFile(path, name.base_offset)
    except FileNotFoundError:
        return None


def start_position(log_path: str, first_offset: int) -> int:
    """Where a walk may begin that looks for offsets from `first_offset` on; 0 if nothing tells."""
    name = segment_file_name(os.path.basename(log_path))
    if name is None or not name.base_offset < first_offset < LARGEST_OFFSET:
        return 0
    index = offset_index(log_path)
    if index is None:
        return 0
    with index:
        entry = index.below_offset(first_offset)
    return 0 if entry is None else max(entry.position, 0)
