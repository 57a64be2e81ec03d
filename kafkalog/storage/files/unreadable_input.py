"""What a command or a job could not read, in all its processes, for its last lines."""

from __future__ import annotations

import atexit
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fcntl import F_SETFL, fcntl
from functools import cache

from kafkalog.exit_codes import ExitCode
from kafkalog.format.unreadable import UnreadableRange, UnreadableRanges
from kafkalog.log_lines import logger
from kafkalog.words import counted

_COMPLETE = (ExitCode.DONE, ExitCode.FINDINGS)
Note = tuple[str, int, int, str]


# The file to which processes append that are not forks of the first one: Spark's, on its machine.
_VARIABLE = "KAFKALOG_UNREADABLE_INPUT"
# Why the bytes of a file are unreadable that was deleted since it was listed.
DELETED = "the file was deleted while it was read"
# The position that a note about a deleted file has.
_DELETED = -1
# So many places are named one by one.
_MOST_NAMED = 100
# The length that a note about missing input has.
_MISSING = -1


_logger = logger(__name__)


@cache
def _log_once(words: str) -> None:
    _logger.warning("%s", words)


class _Process:
    # A file in memory, to which forks append, or that of the variable.
    notes: int | None = None
    # Those of a task that has neither: it returns them.
    carried: list[Note] | None = None


def note_unreadable(path: str, position: int, length: int, reason: str) -> None:
    """Remember that bytes of an input could not be read."""
    _note(path, position, length, reason)


def note_unlisted(path: str, reason: str) -> None:
    """Remember that a directory of the input, or what a file in it is, could not be read."""
    _note(path, 0, 0, reason)


def note_missing(words: str) -> None:
    """Remember that the input lacks something that it says it had; `words` are a line about it.
    It is logged where no run says at its end what was missing, such as in Python."""
    _note(words, 0, _MISSING, "")
    if _Process.notes is None:
        _log_once(words)


def note_deleted(path: str, offsets: str = "") -> None:
    """Remember that a file was deleted between its listing and its reading, and which offsets of a
    log it had. Rule: docs/format.md F950."""
    _note(path, _DELETED, 0, offsets)


def deleted_paths() -> set[str]:
    """Return the files that `note_deleted` was called with in this run, or in an earlier one of the
    same process."""
    if _Process.notes is None:
        return set()
    notes = _notes_of(_Process.notes, 0)
    return {path for path, position, _, _ in notes if position == _DELETED}


def _notes_of(descriptor: int, start: int) -> Iterator[Note]:
    size = os.fstat(descriptor).st_size - start
    for line in os.pread(descriptor, size, start).splitlines():
        path, position, length, reason = json.loads(line)
        yield path, position, length, reason


def _note(path: str, position: int, length: int, reason: str) -> None:
    if _Process.notes is None and (shared := os.environ.get(_VARIABLE)):
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            _Process.notes = os.open(shared, flags)
    if _Process.notes is not None:
        note = path, position, length, reason
        os.write(_Process.notes, json.dumps(note).encode() + b"\n")
    elif _Process.carried is not None:
        _Process.carried.append((path, position, length, reason))


@contextmanager
def carried_notes() -> Iterator[list[Note]]:
    """Yield what this process notes from now on and has no file for: that of a job is on the job's
    own machine. The task returns it, and the job calls `add_notes`."""
    before, _Process.carried = _Process.carried, []
    try:
        yield _Process.carried
    finally:
        _Process.carried = before


def add_notes(notes: Iterable[Note]) -> None:
    """Remember what tasks on other machines could not read."""
    for note in notes:
        _note(*note)


class UnreadableInput:
    """What could not be read since its creation: lines of a file that processes append to."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._start = os.fstat(descriptor).st_size
        fcntl(descriptor, F_SETFL, os.O_APPEND)

    def ranges(self) -> Iterator[tuple[str, UnreadableRange]]:
        """Yield the unreadable ranges of each file, in the order in which the files were read."""
        found: dict[str, UnreadableRanges] = {}
        for path, position, length, reason in self._notes():
            if length != _MISSING:
                found.setdefault(path, UnreadableRanges()).add(position, length, reason)
        for path, ranges in found.items():
            for each in ranges:
                yield path, each

    def lines(self) -> list[str]:
        """Return lines about it, what is missing and whole files first; at most `_MOST_NAMED`, and
        then the number of the others."""
        whole: dict[str, tuple[int, str]] = {}
        for path, place, length, why in self._notes():
            if not length and (why or path not in whole):
                whole[path] = place, why
        missing = [words for words, _, length, _ in self._notes() if length == _MISSING]
        lines = list(dict.fromkeys(missing))
        lines += [_left_out(path, *note) for path, note in whole.items()]
        lines += [f"{path}: {each}" for path, each in self.ranges()]
        more = len(lines) - _MOST_NAMED
        return lines if more <= 0 else [*lines[:_MOST_NAMED], f"and {counted(more, 'place')} more"]

    def exit_code(self, code: int) -> int:
        """Return the exit code of a run that would end with `code` if it had read everything."""
        return ExitCode.UNREADABLE_INPUT if self and code in _COMPLETE else code

    def _notes(self) -> Iterator[Note]:
        return _notes_of(self._descriptor, self._start)

    def __bool__(self) -> bool:
        return os.fstat(self._descriptor).st_size > self._start


def _left_out(path: str, position: int, reason: str) -> str:
    """Return the line about an entry that is left out as a whole."""
    if position != _DELETED:
        return f"{path} cannot be read and is left out: {reason}"
    missing = f": {reason} are not in the output" if reason else ""
    if reason.startswith("offset "):
        missing = f": {reason} is not in the output"
    return f"{path} was deleted while it was read{missing}"


def unread_from_now() -> UnreadableInput | None:
    """Return what this run cannot read from now on, None where nothing remembers it."""
    return None if _Process.notes is None else UnreadableInput(_Process.notes)


def shared_variables() -> dict[str, str]:
    """Return the environment variables that let other processes on the machine record it too."""
    return {_VARIABLE: os.environ[_VARIABLE]} if _VARIABLE in os.environ else {}


@contextmanager
def noted_unreadable() -> Iterator[UnreadableInput]:
    """Remember from now on what this process and its forks cannot read."""
    descriptor = os.memfd_create("kafkalog-unreadable")
    before, _Process.notes = _Process.notes, descriptor
    try:
        yield UnreadableInput(descriptor)
    finally:
        _Process.notes = before
        os.close(descriptor)


@contextmanager
def noted_unreadable_by_all() -> Iterator[UnreadableInput]:
    """Record what this process cannot read, and what processes started from now on cannot read."""
    descriptor, path = _shared_file()
    before, _Process.notes = _Process.notes, descriptor
    os.environ[_VARIABLE] = path
    try:
        yield UnreadableInput(descriptor)
    finally:
        _Process.notes = before
        del os.environ[_VARIABLE]


@cache
def _shared_file() -> tuple[int, str]:
    """Return descriptor and path of the file of this process, which is removed at its end.

    All jobs of a process have the same: Spark keeps the Python workers of each environment that it
    has seen, and starts others for a new one.
    """
    descriptor, path = tempfile.mkstemp(prefix="kafkalog-unreadable-")
    atexit.register(_remove, path, os.getpid())
    return descriptor, path


def _remove(path: str, owner: int) -> None:
    # A fork has the handlers of its parent.
    if os.getpid() == owner:
        with suppress(FileNotFoundError):
            os.unlink(path)
