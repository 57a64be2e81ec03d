"""Topics by the directories of their partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkalog.storage.files.files import entries_left
from kafkalog.storage.log_dir.former_topics import plain_name
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import partition_name
from kafkalog.storage.partition_log import PartitionLog, topic_id


class TopicDirectory(NamedTuple):
    """The topic of a partition's directory; `is_deleted` if the directory is marked for
    deletion, or another topic has the topic's name now."""

    cluster_id: str | None
    topic: str | None
    topic_id: str | None
    is_deleted: bool


def topic_directories(logs: Sequence[PartitionLog]) -> Iterator[TopicDirectory]:
    """Yield the topics that have a directory, and those whose directory is marked for deletion."""
    for log in (*logs, *_being_deleted(logs)):
        found_id, is_deleted = topic_id(log), log.is_former or not log.is_live
        topic = None if log.topic is None else plain_name(log.topic, found_id)
        yield TopicDirectory(log.log_dir.cluster_id, topic, found_id, is_deleted)


def _being_deleted(logs: Sequence[PartitionLog]) -> list[PartitionLog]:
    entries = (entry for path in {log.log_dir.path for log in logs} for entry in entries_left(path))
    paths = [
        entry.path
        for entry in entries
        if entry.is_directory
        and (name := partition_name(entry.name)) is not None
        and name.mark == "delete"
    ]
    return find_partitions(paths, strict=False)
