"""The log directories of a node as they are on disk, before a broker has looked at them.

Rules: docs/format.md F960 and F962.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from sys import intern

from kafkalog.errors import CorruptDataError
from kafkalog.format.side_files.log_dir_files import read_clean_shutdown
from kafkalog.format.side_files.partition_metadata import ENDING_FAULTS, MALFORMED, read_topic_id
from kafkalog.format.side_files.properties import has_bad_escape, read_properties
from kafkalog.messages.schema import ZERO_UUID
from kafkalog.storage.files.entries import Entry
from kafkalog.storage.files.files import (
    entries_left,
    is_directory,
    read_bytes,
    read_text,
    readable_entries,
)
from kafkalog.storage.log_dir.log_dir import CLEAN_SHUTDOWN, META_PROPERTIES
from kafkalog.storage.log_dir.server_properties import ServerProperties
from kafkalog.storage.names import CLUSTER_METADATA, PartitionName, broker_partition_name
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.wire.java_text import java_integer

_NODE_ID, _BROKER_ID, _DIRECTORY_ID = "node.id", "broker.id", "directory.id"
_UUID = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
METADATA_DIR = f"{CLUSTER_METADATA}-0"


@dataclass(frozen=True, slots=True)
class TopicIdFile:
    """A file partition.metadata as a broker reads it: the topic's id, or why it refuses the file,
    and whether it ends then; all None where there is no file."""

    topic_id: str | None = None
    refusal: str | None = None
    ends_process: bool = False

    @classmethod
    def read(cls, folder: str) -> TopicIdFile:
        """Return the file in a partition's directory."""
        try:
            found = read_topic_id(read_bytes(os.path.join(folder, PARTITION_METADATA)).decode())
            is_zero = found == ZERO_UUID
            return cls(None, "a broker refuses the id of zeros") if is_zero else cls(intern(found))
        except FileNotFoundError:
            return cls()
        except UnicodeDecodeError as error:
            return cls(None, f"{MALFORMED}: position {error.start} is not UTF-8")
        except CorruptDataError as error:
            ends = error.fault in ENDING_FAULTS
            verb = "ends at it" if ends else "cannot read it"
            return cls(None, f"a broker {verb}: {error.detail}", ends)

    @property
    def is_missing(self) -> bool:
        return self.topic_id is None and self.refusal is None


@dataclass(frozen=True, slots=True)
class NodeDirectory:
    """A log directory: `meta` is what meta.properties says, None without the file, `meta_error`
    why it cannot be read; `folders` and `files` are the entries in it, `topic_ids` the files with
    topics' ids by the paths of partitions' directories; `clean_epoch` is the epoch of the broker
    that stopped cleanly, None where no file says so."""

    path: str
    is_there: bool = True
    meta: Mapping[str, str] | None = None
    meta_error: str | None = None
    folders: Sequence[Entry] = ()
    files: Sequence[Entry] = ()
    topic_ids: Mapping[str, TopicIdFile] = field(default_factory=dict)
    clean_epoch: int | None = None

    @classmethod
    def read(cls, path: str) -> NodeDirectory:
        """Return the directory at a path; one that is not there or cannot be listed is empty."""
        if not is_directory(path):
            error = "its log directory is a file" if os.path.exists(path) else None
            return cls(path, is_there=error is not None, meta_error=error)
        meta, error = None, None
        try:
            text = read_text(os.path.join(path, META_PROPERTIES))
            meta = None if text is None else read_properties(text, is_exact=True).values
            error = None if meta is None or text is None else _refusal(meta, text)
        except CorruptDataError as unreadable:
            error = unreadable.detail
        entries = entries_left(path, readable_entries)
        folders = [each for each in entries if each.is_directory]
        files = [each for each in entries if not each.is_directory]
        found = cls(path, True, meta, error, folders, files)
        ids = {entry.path: TopicIdFile.read(entry.path) for entry, _ in found.partitions()}
        return replace(found, topic_ids=ids, clean_epoch=_clean_epoch(path))

    @property
    def meta_path(self) -> str:
        return os.path.join(self.path, META_PROPERTIES)

    @property
    def directory_id(self) -> str | None:
        """The id in meta.properties, as Kafka prints it."""
        text = (self.meta or {}).get(_DIRECTORY_ID, "")
        return text[:22] if _UUID.fullmatch(text) else None

    @property
    def is_of_kraft(self) -> bool:
        """Whether meta.properties has the version that brokers without ZooKeeper write."""
        return self.meta is not None and self.meta.get("version", "").strip() == "1"

    @property
    def has_metadata(self) -> bool:
        return any(entry.name == METADATA_DIR for entry in self.folders)

    @property
    def has_records_of_metadata(self) -> bool:
        """Whether a log with a byte, or a snapshot, is in the copy of the metadata."""
        found = readable_entries(os.path.join(self.path, METADATA_DIR)) if self.has_metadata else ()
        return any(
            each.name.endswith(".checkpoint") or (each.name.endswith(".log") and each.size)
            for each in found
        )

    @property
    def node_id(self) -> int | None:
        """The node's id by meta.properties, which has another name in each version."""
        text = (self.meta or {}).get(_NODE_ID if self.is_of_kraft else _BROKER_ID, "")
        return java_integer(text)

    def topic_id(self, folder: str) -> str | None:
        """Return the topic's id in a partition's directory; None without one that can be read."""
        return self.topic_ids.get(folder, TopicIdFile()).topic_id

    @property
    def cluster_id(self) -> str | None:
        return (self.meta or {}).get("cluster.id")

    def partitions(self) -> Iterator[tuple[Entry, PartitionName]]:
        """Yield the directories that a broker takes for partitions, marked ones too."""
        for entry in self.folders:
            name = broker_partition_name(entry.name)
            if name is not None and name.topic != CLUSTER_METADATA:
                yield entry, name


def _clean_epoch(path: str) -> int | None:
    with suppress(CorruptDataError):
        text = read_text(os.path.join(path, CLEAN_SHUTDOWN))
        return None if text is None else read_clean_shutdown(text)
    return None


def _refusal(meta: Mapping[str, str], text: str) -> str | None:
    """Return why a broker cannot read the fields of meta.properties, None if it can."""
    if has_bad_escape(text):
        return "it has a \\u without four hexadecimal digits"
    version = meta.get("version", "0")
    if java_integer(version) not in (0, 1):
        return f"version {version[:80]!r}, and a broker reads versions 0 and 1"
    is_first = int(version) == 0
    missing = [] if is_first else [name for name in (_NODE_ID, "cluster.id") if name not in meta]
    if missing:
        return f"it has no {missing[0]}"
    node_id = meta.get(_BROKER_ID if is_first else _NODE_ID, "0")
    if java_integer(node_id) is None:
        return f"the node's id is {node_id[:80]!r}, which is not a number"
    directory_id = meta.get(_DIRECTORY_ID)
    if directory_id is not None and not _UUID.fullmatch(directory_id):
        return f"the directory.id is {directory_id[:80]!r}, which is not an id"
    return None


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """The directories of one node, and what its server.properties says, if that was given."""

    directories: Sequence[NodeDirectory]
    server: ServerProperties | None = None
    # What was taken for granted, for want of a file that says it.
    assumed: Sequence[str] = field(default_factory=tuple)
    # Directories that were given, and that server.properties does not name.
    unused: Sequence[NodeDirectory] = field(default_factory=tuple)

    @property
    def node_id(self) -> int | None:
        """The id that the node has: by server.properties, or by the directory with the metadata."""
        if self.server is not None and self.server.node_id is not None:
            return self.server.node_id
        main = self.metadata_directory
        ids = [each.node_id for each in self.directories if each.node_id is not None]
        own = main.node_id if main is not None else None
        return own if own is not None else (ids[0] if ids else None)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id by the directory with the metadata, or by the first that has one."""
        main = self.metadata_directory
        ids = [each.cluster_id for each in self.directories if each.cluster_id]
        own = main.cluster_id if main is not None else None
        return own or (ids[0] if ids else None)

    @property
    def is_of_kraft(self) -> bool:
        """Whether the node runs without ZooKeeper, by server.properties or any of its files."""
        if self.server is not None and (self.server.roles or self.server.has_zookeeper):
            return bool(self.server.roles)
        return any(each.is_of_kraft or each.has_metadata for each in self.directories)

    @property
    def made_directories(self) -> list[str]:
        """The log directories that do not exist, which a broker with ZooKeeper makes."""
        return [
            each.path for each in self.directories if not each.is_there and not self.is_of_kraft
        ]

    @property
    def is_unknown(self) -> bool:
        """Whether nothing says which node this is."""
        return self.node_id is None and self.server is None

    @property
    def metadata_directory(self) -> NodeDirectory | None:
        """The directory where the node has its copy of the metadata, or would have it by
        server.properties; None where that is not known."""
        if self.server is not None and self.server.roles:
            path = os.path.realpath(self.server.metadata_dir)
            for each in self.directories:
                if os.path.realpath(each.path) == path:
                    return each
        return next((each for each in self.directories if each.has_metadata), None)


def nodes_of(
    paths: Sequence[str],
    server: ServerProperties | None,
    owners: Mapping[str, tuple[str | None, int]],
) -> list[NodeFiles]:
    """Return the nodes whose log directories are at these paths: one by `server`, or one for each
    id of a node and a cluster. `owners` has these of the directory ids that brokers have
    registered. A directory that names no node belongs to the only one there is."""
    directories = [NodeDirectory.read(path) for path in paths]
    if server is not None:
        return [_configured(directories, server)]
    groups: defaultdict[tuple[str | None, int | None], list[NodeDirectory]] = defaultdict(list)
    for each in directories:
        groups[owners.get(each.directory_id or "", (each.cluster_id, each.node_id))].append(each)
    named = [key for key in groups if None not in key]
    if len(named) == 1:
        return [NodeFiles(directories)]
    return [NodeFiles(each) for each in groups.values()]


def _configured(directories: Sequence[NodeDirectory], server: ServerProperties) -> NodeFiles:
    """Return the node of server.properties. Where one of its log directories is among the given
    ones, the others of them are looked at too; a copy of a disk elsewhere is taken as it is."""
    given = {os.path.realpath(each.path) for each in directories}
    named = server.log_dirs
    if server.values.get("metadata.log.dir", "").strip() and server.metadata_dir not in named:
        named = [*named, server.metadata_dir]
    if not given & {os.path.realpath(path) for path in named}:
        words = f"the directories are copies of {', '.join(server.log_dirs)}, all of them"
        return NodeFiles(directories, server, (words,))
    others = [NodeDirectory.read(path) for path in named if os.path.realpath(path) not in given]
    real = {os.path.realpath(path) for path in named}
    used = [each for each in directories if os.path.realpath(each.path) in real]
    unused = [each for each in directories if each not in used]
    return NodeFiles([*used, *others], server, (), unused)
