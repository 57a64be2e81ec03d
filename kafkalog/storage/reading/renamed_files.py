"""Finding a segment's file again that was renamed after it was listed.

Brokers rename a log file before they delete it, and a partition's directory likewise.
Rule: docs/format.md F94.
"""

from __future__ import annotations

import errno
import os

from kafkalog.storage.files.files import InputFile, list_directory
from kafkalog.storage.files.uris import is_remote
from kafkalog.storage.names import cut_topic, partition_name

_DELETED, _SWAP = ".deleted", ".swap"


def current_path(path: str) -> str | None:
    """Return where the file is now: under its name, marked as deleted, or in a directory that is;
    None if it was deleted."""
    directory, name = os.path.split(path)
    for place in (directory, *_marked_directories(directory)):
        for now in (name, name + _DELETED, name.removesuffix(_SWAP)):
            if os.path.isfile(candidate := os.path.join(place, now)):
                return candidate
    return None


def opened(path: str) -> InputFile:
    """Return the file under its name or the one that it has been given since; its `path` says
    which.

    Raises FileNotFoundError where it was deleted.
    """
    if is_remote(path):
        return InputFile(path)  # brokers rename on their own disks only
    while (found := current_path(path)) is not None:
        try:
            return InputFile(found)
        except FileNotFoundError:
            continue  # renamed just now: look again
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _marked_directories(directory: str) -> list[str]:
    parent, name = os.path.split(os.path.abspath(directory))
    live = partition_name(name)
    if live is None or os.path.isdir(directory) or not os.path.isdir(parent):
        return []
    partition = name.removeprefix(live.topic)
    found = []
    for entry in list_directory(parent):
        marked = partition_name(entry.name) if entry.is_directory else None
        if marked is None or marked.mark != "delete":
            continue
        ending = entry.name.removeprefix(marked.topic)
        if ending.startswith(f"{partition}.") and marked.topic == cut_topic(live.topic, ending):
            found.append(entry.path)
    return found
