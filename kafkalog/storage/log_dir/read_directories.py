"""Which directories are read, so that nothing is written there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from kafkalog.errors import OptionError
from kafkalog.schemas import table_names
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.uris import absolute_path, is_inside, is_remote
from kafkalog.storage.partition_log import PartitionLog


def refuse_inputs(option: str, path: str, files: Iterable[str]) -> None:
    """Raise OptionError for a file to write that is one of the files, by whatever link."""
    target = _identity(path)
    found = next((file for file in files if target and _identity(file) == target), None)
    if found is not None:
        raise OptionError(option, path, f"a file that is not read, which {found} is")


def _identity(path: str) -> tuple[int, int] | None:
    """Return device and inode of the regular file at a path, None without one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def refuse_inside(
    option: str, path: str, directories: Iterable[str], *, what: str = "directory"
) -> None:
    """Raise OptionError for an output path that is one of the directories or is inside one.

    A broker does not start with a directory in its log directory that is not a partition's.
    """
    for directory in directories:
        if is_inside(path, directory):
            raise OptionError(option, path, f"a {what} outside of {directory}")


def refuse_tables(output: str, read: Iterable[str]) -> None:
    """Raise OptionError for an --output-dir that is, or is inside, the input, also by a link, or
    if one of its tables is, or contains part of the input: writing a table can replace its whole
    directory."""
    paths = list(read)
    refuse_inside("--output-dir", output, paths)
    for name in table_names():
        table = os.path.join(output, name)
        if is_remote(table) or os.path.lexists(absolute_path(table)):
            refuse_inside("--output-dir", table, paths)
            inside = next((path for path in paths if is_inside(path, table)), None)
            if inside is not None:
                allowed = f"a directory where {name} holds nothing that is read, as {inside}"
                raise OptionError("--output-dir", output, allowed)


def directories_read(inputs: Iterable[Entry], logs: Iterable[PartitionLog]) -> list[str]:
    """Return the given directories, and those that contain the given partitions and files."""
    found = dict.fromkeys(entry.path for entry in inputs if entry.is_directory)
    for log in logs:
        if log.topic_partition is not None:
            found[log.path] = None
        if log.log_dir.broker_id is not None:
            found[log.log_dir.path] = None
    return list(found)
