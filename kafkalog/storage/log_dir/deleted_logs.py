"""What a broker has deleted but not yet removed: partition directories that end in `-delete` or
`-stray`, and segments that end in `.deleted`. Rules: docs/format.md F92 and F94."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kafkalog.errors import CorruptDataError, LogDirError, OptionError
from kafkalog.format.side_files.partition_metadata import read_topic_id
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import entries_left, read_text, readable_entries
from kafkalog.storage.names import PartitionName, cut_topic, partition_name, segment_file_name
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.storage.recovery.temporary_files import DELETED
from kafkalog.words import first_names, name_suggestions

_LOG = ".log"
UNDELETED_MARKS = ("delete", "stray")
_NO_ID = "none"
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class DeletedLog:
    """A partition directory with something to restore, under the topic's whole name; `topic_id` is
    None if no file has it."""

    topic: str
    partition: int
    path: str
    topic_id: str | None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def deleted_logs(directory: str, topic: str) -> list[DeletedLog]:
    """Return the directories of a topic in a log directory that have something to restore, or the
    given directory if it is a partition's. Raises OptionError if there is none."""
    named = _partition_in(directory)
    places = [(directory, named)] if named is not None else [*_partitions(directory)]
    found = [
        DeletedLog(topic, name.partition, path, _topic_id(path))
        for path, name in places
        if _is_of(topic, path, name) and (name.mark is not None or has_deleted_segments(path))
    ]
    if not found:
        names = {name.topic for path, name in places if name.mark or has_deleted_segments(path)}
        known = name_suggestions([topic], names)
        raise OptionError(
            "--topic", topic, f"a topic that a broker deleted or set aside in {directory}: {known}"
        )  # fmt: skip
    return sorted(found, key=lambda log: (log.partition, log.path))


def one_incarnation(logs: Sequence[DeletedLog], topic_id: str | None) -> list[DeletedLog]:
    """Return the logs of one topic: several topics can have had the same name.

    Raises OptionError if `topic_id` is needed to choose, LogDirError if a partition appears twice.
    """
    by_id: dict[str, list[DeletedLog]] = defaultdict(list)
    for log in logs:
        by_id[log.topic_id or _NO_ID].append(log)
    if topic_id not in by_id and (topic_id is not None or len(by_id) > 1):
        each = (f"{one} ({_names(found)})" for one, found in sorted(by_id.items()))
        raise OptionError("--topic-id", topic_id, f"one of {', '.join(each)}")
    chosen = by_id[topic_id] if topic_id is not None else list(logs)
    for before, log in pairwise(chosen):
        if before.partition == log.partition:
            raise LogDirError(
                f"{log.name} is there twice, {before.path} and {log.path}: give the path of one of "
                "them in place of the log directory"
            )
    return chosen


def deleted_names(directory: str, topics: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of the directories in a log directory that are marked as deleted or stray,
    for the given topics."""
    places = [(path, name) for path, name in _partitions(directory) if name.mark]
    found = {
        topic: [os.path.basename(path) for path, name in places if _is_of(topic, path, name)]
        for topic in topics
    }
    return {topic: names for topic, names in found.items() if names}


def marked_directories(directory: str) -> list[str]:
    """Return the paths of the partition directories that are marked as deleted or stray in a log
    directory, or of the given one if it is such a directory itself."""
    name = _partition_in(directory)
    if name is not None:
        return [directory] if name.mark else []
    return [path for path, found in _partitions(directory) if found.mark]


def _names(logs: Iterable[DeletedLog]) -> str:
    return first_names([os.path.basename(log.path) for log in logs], _MOST_NAMES)


def _partitions(directory: str) -> Iterator[tuple[str, PartitionName]]:
    for entry in entries_left(directory):
        name = _partition_in(entry.path) if entry.is_directory else None
        if name is not None:
            yield entry.path, name


def _partition_in(directory: str) -> PartitionName | None:
    name = partition_name(os.path.basename(os.path.normpath(directory)))
    return name if name is not None and name.mark in (None, *UNDELETED_MARKS) else None


def _is_of(topic: str, path: str, name: PartitionName) -> bool:
    ending = os.path.basename(os.path.normpath(path)).removeprefix(name.topic)
    return name.topic == (cut_topic(topic, ending) if name.mark else topic)


def has_deleted_segments(path: str) -> bool:
    """Return whether a partition's directory has segments that wait for their removal."""
    return any(map(is_deleted_log, readable_entries(path)))


def is_deleted_log(entry: Entry) -> bool:
    """Return whether it is a segment's log that waits for its removal."""
    name = None if entry.is_directory else segment_file_name(entry.name)
    return name is not None and (name.kind, name.mark) == (_LOG, DELETED)


def _topic_id(path: str) -> str | None:
    try:
        text = read_text(os.path.join(path, PARTITION_METADATA))
        return None if text is None else read_topic_id(text)
    except CorruptDataError:
        return None
