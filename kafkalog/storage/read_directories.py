"""Which directories are read, so that nothing is written there."""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.errors import OptionError
from kafkalog.storage.entries import Entry
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.uris import is_inside


def refuse_inside(option: str, path: str, directories: Iterable[str]) -> None:
    """Raise OptionError for a path to write to that is one of the directories or lies in one.

    A broker does not start with a directory in its log directory that is no partition's.
    """
    for directory in directories:
        if is_inside(path, directory):
            raise OptionError(option, path, f"a directory outside of {directory}")


def directories_read(inputs: Iterable[Entry], logs: Iterable[PartitionLog]) -> list[str]:
    """The directories that were given, and those that the given partitions and files are in."""
    found = dict.fromkeys(entry.path for entry in inputs if entry.is_directory)
    for log in logs:
        if log.topic_partition is not None:
            found[log.path] = None
        if log.log_dir.broker_id is not None:
            found[log.log_dir.path] = None
    return list(found)
