"""Whether a node starts, which of its directories it uses, and what becomes of its partitions.

Rules: docs/format.md F960 to F975.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.inspection.start.assigned_replicas import Assignments, ReplicaFate
from kafkalog.inspection.start.directory_files import refused_checkpoints, refused_topic_ids
from kafkalog.inspection.start.directory_names import refused_directories
from kafkalog.inspection.start.meta_properties import assigned_id, meta_reasons
from kafkalog.inspection.start.node_directories import NodeDirectory, NodeFiles
from kafkalog.inspection.start.permissions import BrokerUser, most_frequent_owner, refused_files
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.names import CLUSTER_METADATA

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
    partitions by the paths of their directories, `absent` those that have no directory, each with
    the directory where it begins empty. `assumed` is what no file says."""

    files: NodeFiles
    directories: Sequence[DirectoryStart]
    reasons: Sequence[Reason]
    image: MetadataImage | None
    fates: Mapping[str, ReplicaFate] = field(default_factory=dict)
    absent: Sequence[tuple[str, int, str, ReplicaFate]] = ()
    assumed: Sequence[str] = ()

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
    if image is None and _begins_without_metadata(node):
        image = MetadataImage()
        if node.server is None:
            assumed.append(
                "the node is the only controller and has no __cluster_metadata elsewhere"
            )
    paths = [each.path for each in node.directories if each.is_there]
    user = user or most_frequent_owner(paths)
    found = [*meta_reasons(node, image), *more, *_plugin_reasons(node)]
    for each in node.directories:
        found += [*refused_directories(each), *refused_checkpoints(each)]
        found += refused_topic_ids(each) if node.is_of_kraft else ()
        found += refused_files(each, user) if user is not None else ()
    found += [*_plan_reasons(rows, found), *_doubles(node, rows, image)]
    main = node.metadata_directory if node.is_of_kraft else None
    directories = [
        DirectoryStart(each, each is main, [it for it in found if it.directory == each.path])
        for each in node.directories
    ]
    reasons = [each for each in found if each.ends_process]
    reasons += _without_directories(directories, main)
    start = NodeStart(node, directories, reasons, image, assumed=assumed)
    if image is not None and node.node_id is not None and node.is_of_kraft:
        _add_fates(start, image, node.node_id)
    return start


def _begins_without_metadata(node: NodeFiles) -> bool:
    """Return whether the node has lost the metadata, and no other controller has it."""
    if not node.is_of_kraft or any(each.has_metadata for each in node.directories):
        return False
    server = node.server
    if server is None:
        return True
    is_controller = "controller" in server.roles
    others = server.voters - {node.node_id}
    return is_controller and not others and server.bootstrap_controllers <= 1


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
        yield Reason(folder, row["start_error"], line, log_dir, bool(row["ends_process"]))


def _mending_line(row: Row, folder: str, log_dir: str) -> str:
    if row["topic"] == CLUSTER_METADATA:
        return "kafkalog quorum rebuild --help, or copy the directory of another controller"
    return f"kafkalog salvage {log_dir} --to DIR, or {move_away(folder, log_dir)}"


def _doubles(node: NodeFiles, rows: Sequence[Row], image: MetadataImage | None) -> Iterator[Reason]:
    """Yield the partitions that are in two directories under the same name. The replica to move
    away is the one that ends earlier; of the same end the one that is not assigned."""
    places: defaultdict[tuple[str, int, str | None], list[NodeDirectory]] = defaultdict(list)
    for each in node.directories:
        for _, name in each.partitions():
            if name.mark in (None, "future"):
                places[name.topic, name.partition, name.mark].append(each)
    ends = {row["directory"]: row["log_end_offset"] for row in rows}
    for (topic, number, mark), found in places.items():
        if len(found) < 2 or mark is not None:
            continue
        name = f"{topic}-{number}"

        def worth(each: NodeDirectory, name: str = name) -> tuple[int, bool]:
            is_assigned = each.directory_id == _assigned(node, image, name)
            return ends.get(os.path.join(each.path, name)) or 0, is_assigned

        kept, *others = sorted(found, key=worth, reverse=True)
        for other in others:
            path = os.path.join(other.path, name)
            end, kept_end = (worth(each)[0] for each in (other, kept))
            detail = (
                f"{name} is in {kept.path} too, where it ends at offset {kept_end:,}, here at "
                f"{end:,}; kafkalog replicas {kept.path} {other.path} shows whether records differ"
            )
            yield Reason(path, detail, move_away(path, other.path), other.path)


def _assigned(node: NodeFiles, image: MetadataImage | None, name: str) -> str | None:
    if image is None or node.node_id is None:
        return None
    topic, _, number = name.rpartition("-")
    return Assignments.of(image, node.node_id, ()).place(topic, int(number))


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


def _add_fates(start: NodeStart, image: MetadataImage, node_id: int) -> None:
    online = [
        each.directory.directory_id
        for each in start.directories
        if each.is_online and each.directory.directory_id is not None
    ]
    assignments = Assignments.of(image, node_id, online)
    fates: dict[str, ReplicaFate] = {}
    present = set()
    futures = {
        (name.topic, name.partition): entry.path
        for each in start.files.directories
        for entry, name in each.partitions()
        if name.mark == "future"
    }
    for each in start.directories:
        for entry, name in each.directory.partitions():
            if name.mark is not None:
                continue
            present.add((name.topic, name.partition))
            if not each.is_online:
                fates[entry.path] = assignments.offline_fate(name)
                continue
            fate = assignments.fate(entry.path, name)
            coming = futures.get((name.topic, name.partition))
            if coming is not None and not fate.is_set_aside:
                fate = ReplicaFate(True, f"the copy in {coming} takes its place", fate.has_leader)
            fates[entry.path] = fate
    start.fates = fates
    by_id = {
        assigned_id(start.files, each, image): each.path
        for each in start.files.directories
        if each.is_there
    }
    start.absent = [
        (topic, number, path, fate)
        for topic, number, fate in assignments.absent(present)
        if (path := by_id.get(assignments.place(topic, number))) is not None
    ]
