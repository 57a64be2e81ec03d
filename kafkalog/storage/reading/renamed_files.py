"""Opening a segment's file that was renamed or deleted after it was listed.

Brokers rename a log file before they delete it, and a partition's directory likewise.
Rules: docs/format.md F94, F950 and F951.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Protocol

from kafkalog.storage.files.files import DeletedFile, InputFile, list_directory
from kafkalog.storage.files.unreadable_input import note_deleted
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.names import cut_topic, partition_name

_DELETED, _SWAP = ".deleted", ".swap"
_MARKS = ("delete", "stray")
# A file is renamed twice at most before it is deleted. A file system that lists a file and does not
# open it, as a network's can, answers the same however often it is asked.
_MOST_TRIES = 5
# Whether who reads lists the log again where a segment was deleted.
_is_relisted = ContextVar("_is_relisted", default=False)


class ListedSegment(Protocol):
    """A segment's log file as it was listed."""

    @property
    def path(self) -> str: ...

    @property
    def base_offset(self) -> int | None: ...

    @property
    def next_base_offset(self) -> int | None: ...

    @property
    def size(self) -> int: ...


def current_path(path: str) -> str | None:
    """Return where the file is now: under its name, marked as deleted, or in a directory that is;
    None if it was deleted."""
    directory, name = os.path.split(path)
    for place in chain([directory], _marked_directories(directory)):
        for now in (name, name + _DELETED, name.removesuffix(_SWAP)):
            if os.path.isfile(candidate := os.path.join(place, now)):
                return candidate
    return None


def opened(path: str) -> InputFile:
    """Return the file under its name or the one that it has been given since; its `path` says
    which.

    Raises FileNotFoundError where it was deleted, or where it is listed and cannot be opened.
    """
    if is_remote(path):
        return InputFile(path)  # brokers rename on their own disks only
    for _ in range(_MOST_TRIES):
        if (found := current_path(path)) is None:
            break
        try:
            return InputFile(found)
        except FileNotFoundError:
            continue  # renamed just now: look again
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def opened_segment(segment: ListedSegment) -> InputFile:
    """Return a segment's file as `opened` does. Where it was deleted since it was listed, return a
    file of the listed size whose bytes are all unreadable, and remember which offsets that costs:
    the run goes on without them, names them, and ends with exit code 3. Rule: F950.

    Raises FileNotFoundError within `deletions_raised`.
    """
    try:
        return opened(segment.path)
    except FileNotFoundError:
        if _is_relisted.get():
            raise
        note_deleted_segment(segment)
        return DeletedFile(segment.path, segment.size)


@contextmanager
def deletions_raised() -> Iterator[None]:
    """Let `opened_segment` raise FileNotFoundError in a block whose caller lists the log again."""
    before = _is_relisted.set(True)
    try:
        yield
    finally:
        _is_relisted.reset(before)


def note_deleted_segment(segment: ListedSegment) -> None:
    """Remember that a segment was deleted before it was read."""
    note_deleted(segment.path, _offsets(segment))


def _offsets(segment: ListedSegment) -> str:
    """Return the offsets that a segment can have had."""
    if segment.base_offset is None:
        return "its offsets"
    if segment.next_base_offset is None:
        return f"offsets from {segment.base_offset} on"
    last = segment.next_base_offset - 1
    if last <= segment.base_offset:
        return f"offset {segment.base_offset}"
    return f"offsets {segment.base_offset} to {last}"


def _marked_directories(directory: str) -> Iterator[str]:
    parent, name = os.path.split(os.path.abspath(directory))
    live = partition_name(name)
    if live is None or os.path.isdir(directory) or not os.path.isdir(parent):
        return
    partition = name.removeprefix(live.topic)
    for entry in list_directory(parent):
        marked = partition_name(entry.name) if entry.is_directory else None
        if marked is None or marked.mark not in _MARKS:
            continue
        ending = entry.name.removeprefix(marked.topic)
        if ending.startswith(f"{partition}.") and marked.topic == cut_topic(live.topic, ending):
            yield entry.path
