"""The contents of log directories by names alone, for audits: nothing is refused, not even copies
or directories of several clusters. Rules: docs/format.md F90 to F94."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.properties import read_properties
from kafkalog.storage.files.files import list_directory, matching_entries, read_text
from kafkalog.storage.log_dir.log_dir import META_PROPERTIES
from kafkalog.storage.names import PartitionName, partition_name


@dataclass(frozen=True, slots=True)
class NamedPartition:
    """A partition's directory, by its name."""

    directory: str
    name: PartitionName


@dataclass(frozen=True, slots=True)
class LogDirNames:
    """A log directory: its meta.properties, and its partitions."""

    path: str
    cluster_id: str | None
    broker_id: int | None
    partitions: tuple[NamedPartition, ...]


def log_dir_names(paths: Sequence[str]) -> list[LogDirNames]:
    """Return the contents of the log directories that paths or globs name, each once."""
    found = dict.fromkeys(entry for pattern in paths for entry in matching_entries(pattern))
    return [_names(entry.path) for entry in found if entry.is_directory]


def _names(path: str) -> LogDirNames:
    try:
        properties = read_properties(read_text(os.path.join(path, META_PROPERTIES)) or "").values
    except CorruptDataError:
        properties = {}
    broker_id = properties.get("node.id", properties.get("broker.id", ""))
    return LogDirNames(
        path,
        properties.get("cluster.id"),
        int(broker_id) if re.fullmatch(r"[0-9]{1,9}", broker_id) else None,
        tuple(
            NamedPartition(entry.name, name)
            for entry in list_directory(path)
            if entry.is_directory and (name := partition_name(entry.name)) is not None
        ),
    )
