"""Whether a node starts, which of its directories it uses, and what becomes of its partitions.

Rules: docs/format.md F960 to F973 and F1180 to F1184.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.inspection.metadata.metadata_start import bootstrap_damage
from kafkalog.inspection.start.assigned_replicas import Assignments, ReplicaFate
from kafkalog.inspection.start.directory_files import (
    ignored_checkpoints,
    refused_checkpoints,
    refused_metadata_id,
    refused_topic_ids,
    topic_id_line,
)
from kafkalog.inspection.start.directory_names import files_in_the_way, refused_directories
from kafkalog.inspection.start.meta_properties import assigned_id, meta_reasons, written_meta
from kafkalog.inspection.start.node_directories import NodeDirectory, NodeFiles
from kafkalog.inspection.start.partition_fates import AbsentPartition, LoadedReplicas
from kafkalog.inspection.start.permissions import BrokerUser, most_frequent_owner, refused_files
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.names import CLUSTER_METADATA, broker_partition_name
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.words import counted, first_names

_MOST_NAMES = 3
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DirectoryStart:
    """A log directory once the node runs, and why it is offline."""

    directory: NodeDirectory
    has_metadata: bool
    reasons: Sequence[Reason]

    @property
    def is_online(self) -> bool:
        return all(reason.ends_process for reason in self.reasons)

    @property
    def deleted_directories(self) -> list[str]:
        """The directories marked for deletion, which the broker deletes within minutes."""
        return [entry.path for entry, name in self.directory.partitions() if name.mark == "delete"]


@dataclass(slots=True)
class NodeStart:
    """A node at its start: `reasons` are all of why it does not start, `fates` what becomes of
    partitions by the paths of their directories, `absent` those that have no directory. `assumed`
    is what no file says, `notices` why partitions are set aside or have no leader although the node
    starts."""

    files: NodeFiles
    directories: Sequence[DirectoryStart]
    reasons: Sequence[Reason]
    image: MetadataImage | None
    fates: Mapping[str, ReplicaFate] = field(default_factory=dict)
    absent: Sequence[AbsentPartition] = ()
    assumed: Sequence[str] = ()
    notices: list[Reason] = field(default_factory=list)

    @property
    def broker_starts(self) -> bool:
        return not self.reasons


def judged_node(
    node: NodeFiles,
    image: MetadataImage | None,
    rows: Sequence[Row],
    user: BrokerUser | None,
    more: Sequence[Reason] = (),
) -> NodeStart:
    """Return what becomes of a node. `image` is the cluster's metadata, None where no copy of it
    was found; `rows` are those of view `recovery_plan` of the node's partitions, and `more` other
    reasons."""
    assumed = [*node.assumed]
    found: list[Reason] = []
    if image is None and _begins_without_metadata(node):
        image = MetadataImage()
        found += _bootstrap_reasons(node)
    elif image is None and node.is_of_kraft:
        assumed.append(
            f"{CLUSTER_METADATA} is in a directory that was not given, or on other controllers; "
            "where it is lost, the broker sets EVERY partition aside: --server-properties decides"
        )
    paths = [each.path for each in node.directories if each.is_there]
    user = user or most_frequent_owner(paths)
    found += [*meta_reasons(node, image), *more, *_plugin_reasons(node)]
    for each in node.directories:
        if each.meta_error is not None:
            # A broker does not look into it.
            continue
        found += [*refused_directories(each), *refused_checkpoints(each)]
        found += refused_metadata_id(each) if node.is_of_kraft else ()
        found += files_in_the_way(each, image, node.node_id)
        found += refused_topic_ids(each, _topic_ids(image)) if node.is_of_kraft else ()
        found += refused_files(each, user) if user is not None else ()
    assignments = None
    if image is not None and node.node_id is not None and node.is_of_kraft:
        assignments = Assignments.of(image, node.node_id, ())
    loaded = LoadedReplicas.of(node, assignments)
    found += [*_plan_reasons(rows, found), *loaded.doubles(rows)]
    main = node.metadata_directory if node.is_of_kraft else None
    directories = [
        DirectoryStart(each, each is main, [it for it in found if it.directory == each.path])
        for each in node.directories
    ]
    reasons = [each for each in found if each.ends_process]
    reasons += _without_directories(directories, main)
    start = NodeStart(node, directories, reasons, image, assumed=assumed)
    if assignments is not None:
        loaded = replace(loaded, assignments=replace(assignments, online=_online_ids(directories)))
    offline = [each.directory.path for each in directories if not each.is_online]
    start.notices += [
        reason
        for each in node.directories
        if each.meta_error is None
        for reason in ignored_checkpoints(each)
    ]
    start.fates, start.absent = loaded.fates(offline), [*loaded.absent()]
    if image is not None:
        start.notices += _other_ids(start, image)
    start.notices += _set_aside(start, image or MetadataImage(), is_known=image is not None)
    return start


def _online_ids(directories: Sequence[DirectoryStart]) -> list[str]:
    return [
        each.directory.directory_id
        for each in directories
        if each.is_online and each.directory.directory_id is not None
    ]


def _topic_ids(image: MetadataImage | None) -> dict[str, str]:
    rows = image.tables["topic"].items() if image is not None else ()
    return {row["topic"]: topic_id for (topic_id,), row in rows}


def _begins_without_metadata(node: NodeFiles) -> bool:
    """Return whether the node has lost the metadata, and no other controller has it."""
    if not node.is_of_kraft or any(each.has_metadata for each in node.directories):
        return False
    server = node.server
    if server is None:
        return False
    is_controller = "controller" in server.roles
    others = server.voters - {node.node_id}
    return is_controller and not others and server.bootstrap_controllers <= 1


def _bootstrap_reasons(node: NodeFiles) -> Iterator[Reason]:
    """Yield damage in the file from which a controller without metadata begins."""
    main = node.metadata_directory
    damage = None if main is None else bootstrap_damage(main.path)
    if damage is not None and main is not None:
        path = damage.path or main.path
        detail = f"a broker ends at it: position {damage.position}: {damage.detail}"
        yield Reason(path, detail, move_away(path, main.path), main.path)


def _plugin_reasons(node: NodeFiles) -> Iterator[Reason]:
    plugin = node.server.plugin_without_path if node.server is not None else None
    if plugin is not None and node.server is not None:
        path = node.server.path
        detail = (
            f"remote.log.storage.manager.class.name is {plugin}, which Kafka does not have, and "
            "remote.log.storage.manager.class.path names no jar of it"
        )
        line = "add remote.log.storage.manager.class.path, or put the jar into libs/ of Kafka"
        yield Reason(path, detail, line, "")


def _plan_reasons(rows: Iterable[Row], known: Sequence[Reason]) -> Iterator[Reason]:
    """Yield what a broker meets in a log that it cannot load, but for what is known already."""
    unusable = {each.file for each in known}
    for row in rows:
        if row["start_error"] is None:
            continue
        folder = row["directory"]
        log_dir = os.path.dirname(folder)
        if any(path == folder or path.startswith(f"{folder}/") for path in unusable):
            continue
        line = _mending_line(row, folder, log_dir)
        # What is in the way of the metadata ends the process before a directory can go offline.
        ends = bool(row["ends_process"]) or row["topic"] == CLUSTER_METADATA
        yield Reason(folder, row["start_error"], line, log_dir, ends)


def _mending_line(row: Row, folder: str, log_dir: str) -> str:
    if row["topic"] == CLUSTER_METADATA:
        return "kafkalog quorum rebuild --help, or copy the directory of another controller"
    return f"kafkalog salvage {log_dir} --to DIR, or {move_away(folder, log_dir)}"


def _without_directories(
    directories: Sequence[DirectoryStart], main: NodeDirectory | None
) -> Iterator[Reason]:
    """Yield why the node ends by what is offline: the directory of the metadata, or all."""
    offline = [each for each in directories if not each.is_online]
    for each in offline:
        first = next(reason for reason in each.reasons if not reason.ends_process)
        if each.directory is main:
            detail = f"{each.directory.path} goes offline, and it has the metadata: {first.reason}"
            yield Reason(first.file, detail, first.what_to_do, first.directory)
        elif len(offline) == len(directories):
            detail = f"{each.directory.path} goes offline, as all log directories: {first.reason}"
            yield Reason(first.file, detail, first.what_to_do, first.directory)


def _other_ids(start: NodeStart, image: MetadataImage) -> Iterator[Reason]:
    """Yield the directories whose partitions the metadata assigns to another directory id."""
    for each in start.directories:
        directory = each.directory
        expected = assigned_id(start.files, directory, image)
        names = [
            os.path.basename(path)
            for path, fate in start.fates.items()
            if fate.has_leader is False and os.path.dirname(path) == directory.path
        ]
        if not each.is_online or not names or expected in (None, directory.directory_id):
            continue
        detail = (
            f"no leader: {counted(len(names), 'partition')} of {directory.path}, "
            f"{first_names(names, _MOST_NAMES)}: the metadata assigns them to directory.id "
            f"{expected}, and meta.properties has {directory.directory_id or 'none that counts'}"
        )
        line = written_meta(start.files, directory, image)
        yield Reason(directory.meta_path, detail, line, directory.path, False)


def _set_aside(start: NodeStart, image: MetadataImage, *, is_known: bool) -> Iterator[Reason]:
    """Yield the partitions that are set aside, those with the same reason together. Without the
    metadata (`is_known`) the ids of topics are not known."""
    groups: defaultdict[tuple[str, str | None], list[str]] = defaultdict(list)
    absent = {
        os.path.join(each.log_dir, f"{each.topic}-{each.partition}"): each.fate
        for each in start.absent
    }
    for path, fate in (*start.fates.items(), *absent.items()):
        if fate.is_set_aside and fate.reason is not None:
            groups[fate.reason, fate.what_to_do].append(path)
    for (reason, own_line), paths in groups.items():
        first = paths[0]
        verb = "is" if len(paths) == 1 else "are"
        detail = f"{first_names(paths, _MOST_NAMES)} {verb} set aside: {reason}"
        line = own_line or _line_for(first, reason, start, image, is_known)
        yield Reason(first, detail, line, "", False)


def _line_for(
    path: str, reason: str, start: NodeStart, image: MetadataImage, is_known: bool
) -> str:
    """Return the line that keeps a partition from being set aside."""
    name = broker_partition_name(os.path.basename(path))
    topic_id = _topic_ids(image).get(name.topic) if name is not None else None
    if PARTITION_METADATA in reason and topic_id is not None:
        return topic_id_line(os.path.join(path, PARTITION_METADATA), topic_id)
    if is_known and not image.tables["topic"]:
        node = start.files.metadata_directory
        place = os.path.join(node.path if node is not None else "", f"{CLUSTER_METADATA}-0")
        return (
            f"restore {place} from a backup of this node before the start; without one: "
            "kafkalog quorum rebuild --help"
        )
    target = os.path.dirname(path).rstrip("/") + ".aside"
    return f"keep a copy, if the records are still wanted: cp -a {quote(path)} {quote(target)}"
