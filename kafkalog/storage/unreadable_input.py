"""What this process and those that it forks could not read, for the end of a command or a task."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import F_SETFL, fcntl

from kafkalog.format.unreadable import UnreadableRange, UnreadableRanges


class _Process:
    # A file in memory, to which forks append.
    notes: int | None = None


def note_unreadable(path: str, position: int, length: int, reason: str) -> None:
    """Remember that bytes of an input could not be read."""
    _note(path, position, length, reason)


def note_unlisted(path: str, reason: str) -> None:
    """Remember that a directory of the input, or what a file in it is, could not be read."""
    _note(path, 0, 0, reason)


def _note(*note: str | int) -> None:
    if _Process.notes is not None:
        os.write(_Process.notes, json.dumps(note).encode() + b"\n")


class UnreadableInput:
    """What could not be read since this was made, in this process and its forks."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("kafkalog-unreadable")
        # Each line goes to the end, whichever process writes it.
        fcntl(self._descriptor, F_SETFL, os.O_APPEND)

    def ranges(self) -> Iterator[tuple[str, UnreadableRange]]:
        """The unreadable ranges of each file, in the order in which the files were met."""
        found: dict[str, UnreadableRanges] = {}
        for path, position, length, reason in self._notes():
            found.setdefault(path, UnreadableRanges()).add(position, length, reason)
        for path, ranges in found.items():
            for each in ranges:
                yield path, each

    def lines(self) -> list[str]:
        """The same in words, directories first."""
        unlisted = {path: reason for path, _, length, reason in self._notes() if not length}
        lines = [f"{path} cannot be read and is left out: {unlisted[path]}" for path in unlisted]
        return lines + [f"{path}: {each}" for path, each in self.ranges()]

    def _notes(self) -> Iterator[tuple[str, int, int, str]]:
        size = os.fstat(self._descriptor).st_size
        for line in os.pread(self._descriptor, size, 0).splitlines():
            path, position, length, reason = json.loads(line)
            yield path, position, length, reason

    def __bool__(self) -> bool:
        return os.fstat(self._descriptor).st_size > 0

    def _close(self) -> None:
        os.close(self._descriptor)


@contextmanager
def noted_unreadable() -> Iterator[UnreadableInput]:
    """Remember from now on what cannot be read."""
    before, noted = _Process.notes, UnreadableInput()
    _Process.notes = noted._descriptor
    try:
        yield noted
    finally:
        _Process.notes = before
        noted._close()
