"""Every file of log directories, backups and tiered storage, and what each of them is.

Unlike what reads logs, this leaves nothing out silently: files that brokers have marked, other
incarnations and log directories further down are in the list, and so is what is not searched.
Rule: docs/erasure.md F1110.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import list_directory, special_entries
from kafkalog.storage.files.read_around import unreadable_reason
from kafkalog.storage.log_dir.log_dir import input_entries
from kafkalog.storage.log_dir.metadata_snapshots import is_metadata_snapshot
from kafkalog.storage.log_dir.other_entries import INDEX_CACHE, OF_LOG_DIRS, OF_PARTITIONS
from kafkalog.storage.log_dir.tiered_storage import is_beside_tiered_log, tiered_partition_name
from kafkalog.storage.names import (
    BROKERS_TOPICS,
    oldest_base_offset,
    partition_name,
    segment_base_offset,
    segment_file_name,
    snapshot_offset,
)
from kafkalog.storage.recovery.temporary_files import DELETED

_LOG, _LOCK = ".log", ".lock"
# Log directories of several brokers in a backup lie a few folders down.
_MOST_FOLDERS = 8
# How listings describe what may be a regular file elsewhere, or later.
_MAY_BE_FILES = ("a link", "unreadable")


class Part(StrEnum):
    """What a file is: a segment's log, an index of one, another file that brokers write, or one
    that is not searched."""

    LOG = "log"
    INDEX = "index"
    BESIDE = "beside"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class InputEntry:
    """A file. `place` is its path below the input `input_path`, `directory_mark` and `file_mark`
    what a broker has marked it with; `why` is why a file is left out, `can_have_records` whether it
    can have records all the same."""

    path: str
    place: str
    input_path: str
    size: int
    part: Part
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    next_base_offset: int | None = None
    directory_mark: str = ""
    file_mark: str = ""
    is_tiered: bool = False
    why: str = ""
    can_have_records: bool = True

    @property
    def is_internal(self) -> bool:
        """Whether the topic's records are Kafka's own."""
        return self.topic in BROKERS_TOPICS

    @property
    def is_file(self) -> bool:
        """Whether it is a file with bytes that can be read."""
        return self.size > 0

    @property
    def segment(self) -> str:
        """The path without the ending by which files of a segment differ."""
        name = segment_file_name(os.path.basename(self.path))
        stem = os.path.basename(self.path) if name is None else name.stem + name.mark
        return os.path.join(os.path.dirname(self.path), stem)


def input_files(path: str) -> list[InputEntry]:
    """Return the files under a path of a user, which is a directory or a glob of some. Raises
    LogDirError for a path without files."""
    found: list[InputEntry] = []
    for entry in input_entries(path):
        if entry.is_directory:
            found += _Walk(entry.path).files(entry.path, 0)
        else:
            directory = os.path.dirname(entry.path)
            beside = _Walk(directory).files(directory, _MOST_FOLDERS)
            found += [each for each in beside if each.path == entry.path]
    return found


class _Walk:
    def __init__(self, root: str) -> None:
        self._root = root

    def files(self, directory: str, depth: int) -> Iterator[InputEntry]:
        """Yield the files in a directory and below it, in the order of their names."""
        try:
            entries = list_directory(directory)
        except OSError as error:
            reason = unreadable_reason(error)
            if reason is None:
                raise
            yield self._left_out(directory, f"a directory that cannot be read: {reason}")
            return
        for special in special_entries(directory):
            what = f"{special.special}: only regular files are read"
            # Pipes and the like have no bytes of their own; a link may lead to a disk that is away.
            can = str(special.special).startswith(_MAY_BE_FILES)
            nothing = special._replace(size=0)
            yield self._entry(nothing, Part.LEFT_OUT, why=what, can_have_records=can)
        yield from self._own_files(directory, [each for each in entries if not each.is_directory])
        for entry in entries:
            if not entry.is_directory:
                continue
            if entry.name == INDEX_CACHE:
                why = "indexes of tiered segments, which a broker fetches again"
                yield self._entry(entry, Part.LEFT_OUT, why=why, can_have_records=False)
            elif depth < _MOST_FOLDERS:
                yield from self.files(entry.path, depth + 1)
            else:
                why = f"a directory that is {depth + 1} folders down: give it as a PATH of its own"
                yield self._left_out(entry.path, why)

    def _left_out(self, directory: str, why: str) -> InputEntry:
        """Return the entry of a directory that is not searched."""
        entry = Entry(os.path.basename(directory), directory, is_directory=True, size=0)
        return self._entry(entry, Part.LEFT_OUT, why=why)

    def _own_files(self, directory: str, entries: list[Entry]) -> Iterator[InputEntry]:
        topic, partition, mark, is_tiered = _partition_of(directory)
        bases = [base for each in entries if (base := segment_base_offset(each.name)) is not None]
        following = dict(pairwise(bases))
        for entry in entries:
            part, why = _part(entry.name)
            if part is None:
                continue
            name = segment_file_name(entry.name)
            base = None if name is None else name.base_offset
            is_live = name is not None and not name.mark and name.stem.isdecimal()
            yield self._entry(
                entry,
                part,
                topic=topic,
                partition=partition,
                base_offset=base,
                next_base_offset=following.get(base) if is_live and base is not None else None,
                directory_mark=mark,
                file_mark="" if name is None else name.mark.removeprefix("."),
                is_tiered=is_tiered,
                why=why,
                can_have_records=entry.size > 0,
            )

    def _entry(self, entry: Entry, part: Part, **fields: object) -> InputEntry:
        place = entry.path.removeprefix(self._root).lstrip("/")
        return InputEntry(entry.path, place, self._root, entry.size, part, **fields)  # type: ignore[arg-type]


def _partition_of(directory: str) -> tuple[str | None, int | None, str, bool]:
    """Return topic, partition, mark and whether it is tiered storage, by a directory's names."""
    tiered = tiered_partition_name(directory)
    if tiered is not None:
        return tiered[0], tiered[1], "", True
    name = partition_name(os.path.basename(directory))
    if name is None:
        return None, None, "", False
    return name.topic, name.partition, name.mark or "", False


def is_log_file(name: str) -> bool:
    """Return whether a file of this name has the batches of a segment, marked or not."""
    segment_file = segment_file_name(name)
    return segment_file is not None and segment_file.kind == _LOG


def _part(name: str) -> tuple[Part | None, str]:
    """Return what a file is by its name and, if it is left out, why; None for a lock."""
    if name == _LOCK:
        return None, ""
    if segment_file_name(name) is not None:
        return (Part.LOG if is_log_file(name) else Part.INDEX), ""
    if oldest_base_offset(name) is not None:
        return Part.LEFT_OUT, "a log in the layout of Kafka 0.7, which is not searched"
    own = name.removesuffix(DELETED)
    is_known = (
        own in OF_LOG_DIRS
        or own in OF_PARTITIONS
        or snapshot_offset(own) is not None
        or is_metadata_snapshot(own)
        or is_beside_tiered_log(own)
    )
    return (Part.BESIDE, "") if is_known else (Part.LEFT_OUT, "not a file that brokers write")
