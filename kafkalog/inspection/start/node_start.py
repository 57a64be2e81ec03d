"""Whether a node starts, which of its directories it uses, and what becomes of its partitions.

Rules: docs/format.md F960 to F973, F1180 to F1187 and F1188 to F1191.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.coordination.metadata.leader_election import StartingBroker
from kafkalog.inspection.metadata.metadata_start import bootstrap_damage
from kafkalog.inspection.start.assigned_replicas import (
    NEW_DIRECTORY,
    NOT_IN_ZOOKEEPER,
    OFFLINE,
    WAITS,
    Assignments,
    ReplicaFate,
    assigned_elsewhere,
)
from kafkalog.inspection.start.awaited_controllers import awaited_controllers
from kafkalog.inspection.start.directory_files import (
    ignored_checkpoints,
    marked_logs,
    refused_checkpoints,
    refused_metadata_id,
    refused_topic_ids,
    topic_id_line,
)
from kafkalog.inspection.start.directory_names import files_in_the_way, refused_directories
from kafkalog.inspection.start.log_reasons import log_reasons
from kafkalog.inspection.start.meta_properties import (
    assigned_id,
    id_of_all,
    meta_reasons,
    written_meta,
)
from kafkalog.inspection.start.node_directories import NodeDirectory, NodeFiles
from kafkalog.inspection.start.partition_fates import AbsentPartition, LoadedReplicas
from kafkalog.inspection.start.permissions import (
    BrokerUser,
    full_notice,
    most_frequent_owner,
    refused_files,
)
from kafkalog.inspection.start.plugins import judged_plugins
from kafkalog.inspection.start.reasons import Reason, move_away
from kafkalog.storage.log_dir.jars import Jars
from kafkalog.storage.names import CLUSTER_METADATA, broker_partition_name
from kafkalog.storage.partition_log import PARTITION_METADATA
from kafkalog.words import counted, first_names

_MOST_NAMES = 3
# So many directories are copied one by one.
_MOST_COPIED = 10
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
    is what no file says, `plugins` the classes that have to be on the class path, `notices` why
    partitions are set aside or have no leader although the node starts."""

    files: NodeFiles
    directories: Sequence[DirectoryStart]
    reasons: Sequence[Reason]
    image: MetadataImage | None
    fates: Mapping[str, ReplicaFate] = field(default_factory=dict)
    absent: Sequence[AbsentPartition] = ()
    assumed: Sequence[str] = ()
    notices: list[Reason] = field(default_factory=list)
    loaded: LoadedReplicas | None = None
    starting: StartingBroker | None = None
    plugins: Sequence[str] = ()
    # That the metadata was not found: what becomes of the partitions is not known.
    unknown: Sequence[str] = ()

    @property
    def broker_starts(self) -> bool:
        return not self.reasons

    @property
    def stays_up(self) -> bool:
        """Whether the process goes on: it starts, or it waits for what never comes, and serves
        nothing."""
        return all(each.stays_up for each in self.reasons)

    @property
    def knows_metadata(self) -> bool:
        return not self.unknown

    def decide(
        self, starting_too: Sequence[StartingBroker], unrecorded: Iterable[AbsentPartition] = ()
    ) -> None:
        """Find what becomes of the partitions, where other nodes start too. It is not known where
        server.properties names another node, which keeps this one from starting."""
        own = () if self.starting is None else (self.starting,)
        awaited = awaited_controllers(self.files, self.image, [*own, *starting_too])
        self.assumed = [*self.assumed, *awaited]
        loaded = self.loaded
        if loaded is None or id_of_all(self.files) is not None:
            return
        if loaded.assignments is not None and self.starting is not None:
            assignments = loaded.assignments.starting(self.starting, starting_too)
            loaded = replace(loaded, assignments=assignments)
        offline = [each.directory.path for each in self.directories if not each.is_online]
        unused = loaded.unused_fates()
        self.fates = {**loaded.fates(offline), **unused}
        self.absent = [*loaded.absent(unrecorded)]
        image, self.notices = self.image, [*self.notices, *_unused_notices(self.files, unused)]
        others = [*_other_ids(self, image)] if image is not None else []
        self.notices += [reason for reason, _ in others]
        told = {path for _, paths in others for path in paths}
        self.notices += _leader_notices(self, told)
        self.notices += _empty_notices(self)
        known = image or MetadataImage()
        self.notices += _set_aside(self, known, is_known=image is not None)


def judged_node(
    node: NodeFiles,
    image: MetadataImage | None,
    rows: Sequence[Row],
    user: BrokerUser | None,
    jars: Jars | None,
    release: str,
    more: Sequence[Reason] = (),
    *,
    zookeeper: MetadataImage | None = None,
) -> NodeStart:
    """Return what becomes of a node; `decide` finds what becomes of its partitions. `image` is the
    cluster's metadata, None where no copy of it was found; `rows` are those of view `recovery_plan`
    of the node's partitions, `jars` those on its class path, `release` is the one that starts,
    `more` are other reasons, and `zookeeper` is the metadata of a cluster with ZooKeeper, None
    where its files were not given."""
    found: list[Reason] = []
    if image is None and _begins_without_metadata(node):
        image = MetadataImage()
        found += _bootstrap_reasons(node)
    unknown = _without_image(node) if image is None and node.is_of_kraft else None
    paths = [each.path for each in node.directories if each.is_there]
    user = user or most_frequent_owner(paths)
    plugins = judged_plugins(node.server, jars, release)
    found += [*meta_reasons(node, image), *more, *plugins.reasons]
    for each in node.directories:
        if each.meta_error is not None:
            # A broker does not look into it.
            continue
        found += [*refused_directories(each), *refused_checkpoints(each)]
        found += refused_metadata_id(each) if node.is_of_kraft else ()
        found += files_in_the_way(each, image, node.node_id)
        found += refused_topic_ids(each, _topic_ids(image), is_of_kraft=node.is_of_kraft)
        for reason in refused_files(each, user) if user is not None else ():
            ends = reason.file == each.meta_path and each is node.metadata_directory
            found.append(replace(reason, ends_process=reason.ends_process or ends))
    assignments = None
    known = image if node.is_of_kraft else zookeeper
    if known is not None and node.node_id is not None:
        settings = None if node.server is None else node.server.values
        assignments = Assignments.of(
            known, node.node_id, settings, is_of_zookeeper=not node.is_of_kraft
        )
    loaded = LoadedReplicas.of(node, assignments)
    unclean = {os.path.dirname(row["directory"]) for row in rows if _is_unclean(row)}
    loadable = [*rows, *marked_logs(node.directories, unclean)]
    # What a version refuses of the metadata's records does not hide what is beside them.
    of_files = [each for each in found if each not in more]
    found += [*log_reasons(loadable, of_files), *loaded.doubles(rows)]
    main = node.metadata_directory if node.is_of_kraft else None
    directories = [
        DirectoryStart(each, each is main, [it for it in found if it.directory == each.path])
        for each in node.directories
    ]
    reasons = [each for each in found if each.ends_process]
    reasons += _without_directories(directories, main)
    notices = [
        reason
        for each in node.directories
        if each.meta_error is None
        for reason in ignored_checkpoints(each)
    ]
    refused = {reason.file for reason in found}
    full = (full_notice(each, user) for each in node.directories if user is not None)
    notices += [each for each in full if each is not None and each.file not in refused]
    start = NodeStart(
        *(node, directories, reasons, image),
        assumed=[*node.assumed, *plugins.assumed(), *_without_zookeeper(node, zookeeper)],
        plugins=plugins.needed,
        unknown=() if unknown is None else (unknown.reason,),
        notices=notices if unknown is None else [unknown, *notices],
        loaded=loaded,
    )
    if node.node_id is not None:
        is_clean = image is not None and _stopped_cleanly(directories, image, rows, node.node_id)
        is_whole = all(each.is_online and each.directory.is_there for each in directories)
        present = {
            (name.topic, name.partition)
            for each in node.directories
            for _, name in each.partitions()
            if name.mark is None
        }
        online = _online_ids(directories)
        start.starting = StartingBroker(node.node_id, online, is_clean, is_whole, present)
    return start


def _is_unclean(row: Row) -> bool:
    return bool(row["topic"] != CLUSTER_METADATA and row["shutdown"] == "unclean")


def _stopped_cleanly(
    directories: Sequence[DirectoryStart], image: MetadataImage, rows: Sequence[Row], node_id: int
) -> bool:
    """Return whether the controller takes the node's stop for a clean one: each directory has the
    epoch in which it was registered, or is taken to have it."""
    stops = {row["shutdown"] for row in rows if row["topic"] != CLUSTER_METADATA}
    broker = image.tables["broker"].get((node_id,))
    if broker is None or any(map(_is_unclean, rows)):
        return False
    epochs = {each.directory.clean_epoch for each in directories if each.directory.is_there}
    if not all(each.is_online for each in directories):
        return False
    is_assumed = epochs == {None} and stops == {"clean"}
    return is_assumed or epochs == {broker["broker_epoch"]}


def _leader_notices(start: NodeStart, told: Collection[str]) -> Iterator[Reason]:
    """Yield why partitions have no leader, or one that costs records, those of a reason together;
    but for the directories that are `told`."""
    groups: defaultdict[tuple[str, bool | None], list[str]] = defaultdict(list)
    absent = {f"{each.topic}-{each.partition}": each.fate for each in start.absent}
    here = {
        path: fate
        for path, fate in start.fates.items()
        if path not in told and not fate.is_set_aside
    }
    for path, fate in (*here.items(), *absent.items()):
        # With NEW_DIRECTORY the partition is among those that begin empty.
        if fate.leader_reason not in (None, OFFLINE, NEW_DIRECTORY):
            groups[str(fate.leader_reason), fate.has_leader].append(path)
    for (why, has_leader), paths in groups.items():
        names = [*map(os.path.basename, paths)]
        label = {True: "unclean election", False: "no leader", None: "empty leader"}[has_leader]
        detail = f"{label}: {counted(len(names), 'partition')}, {first_names(names, _MOST_NAMES)}"
        lines = ["start the other brokers first: one that is in sync leads then"]
        if has_leader is None:
            lines = [f"{_copying_line(paths)}  # if their records are still wanted"]
        elif why == NOT_IN_ZOOKEEPER:
            lines = [move_away(path, os.path.dirname(path)) for path in paths]
        elif not has_leader:
            topic, _, number = names[0].rpartition("-")
            if WAITS not in why:
                lines = []
            lines.append(
                "kafka-leader-election.sh --bootstrap-server HOST:PORT --election-type unclean "
                f"--topic {quote(topic)} --partition {number} makes this node the leader without "
                "them, and what it lacks is LOST"
            )
        yield Reason("", f"{detail}: {why}", "; ".join(lines), "", False)


def _empty_notices(start: NodeStart) -> Iterator[Reason]:
    """Yield the partitions that this node leads with an empty log, because their directories are
    missing, those of a log directory together."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for each in start.absent:
        if each.fate.begins_empty and each.future is None and not each.fate.is_set_aside:
            groups[each.log_dir].append(f"{each.topic}-{each.partition}")
    for log_dir, names in groups.items():
        detail = (
            f"{counted(len(names), 'partition')} of {log_dir} BEGIN EMPTY, because this node leads "
            f"them and has no directory of them: {first_names(names, _MOST_NAMES)}"
        )
        line = (
            "look for the directories before the start, in lost+found, in a backup, on another "
            "disk; those of topics that were made just before the stop had no records"
        )
        yield Reason(log_dir, detail, line, log_dir, False)


def _unused_notices(node: NodeFiles, fates: Mapping[str, ReplicaFate]) -> Iterator[Reason]:
    for each in node.unused:
        names = [os.path.basename(path) for path in fates if os.path.dirname(path) == each.path]
        if names and node.server is not None:
            detail = (
                f"log.dirs does not name {each.path}: {counted(len(names), 'partition')}, "
                f"{first_names(names, _MOST_NAMES)}, of it BEGIN EMPTY elsewhere"
            )
            line = f"name {each.path} in log.dirs of {node.server.path}"
            yield Reason(each.path, detail, line, "", False)


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
    if not node.is_of_kraft or any(each.has_records_of_metadata for each in node.directories):
        return False
    server = node.server
    if server is None:
        return False
    is_controller = "controller" in server.roles
    others = server.voters - {node.node_id}
    return is_controller and not others and server.bootstrap_controllers <= 1


def _without_zookeeper(node: NodeFiles, zookeeper: MetadataImage | None) -> Iterator[str]:
    """Yield what only ZooKeeper knows of a broker, without its files."""
    if not (node.is_of_kraft or node.is_unknown) and zookeeper is None:
        yield (
            "ZooKeeper has the partitions that are here, and this broker can lead them: with "
            "--zookeeper and its data directory this is judged"
        )


def _without_image(node: NodeFiles) -> Reason:
    """Return that the node's copy of the metadata was not found, and what follows from it."""
    count = sum(name.mark is None for each in node.directories for _, name in each.partitions())
    places = first_names([each.path for each in node.directories], _MOST_NAMES)
    detail = (
        f"no {CLUSTER_METADATA}-0 that can be read is in {places}, and each node without ZooKeeper "
        "has one, in metadata.log.dir or the first of log.dirs"
    )
    every = counted(count, "partition")
    lost = (
        f"If it is lost: the only controller of a cluster sets all of {every} aside, restore its "
        "copy from a backup first; any other node copies it from the controllers"
    )
    line = f"give that directory too, and --server-properties. {lost}"
    if node.server is not None:
        line = f"look for it before the start. {lost}"
    return Reason("", detail, line, "", False)


def _bootstrap_reasons(node: NodeFiles) -> Iterator[Reason]:
    """Yield damage in the file from which a controller without metadata begins."""
    main = node.metadata_directory
    damage = None if main is None else bootstrap_damage(main.path)
    if damage is not None and main is not None:
        path = damage.path or main.path
        detail = f"a broker ends at it: position {damage.position}: {damage.detail}"
        yield Reason(path, detail, move_away(path, main.path), main.path)


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


def _other_ids(start: NodeStart, image: MetadataImage) -> Iterator[tuple[Reason, list[str]]]:
    """Yield the directories whose partitions the metadata assigns to another directory id, and the
    paths of these."""
    for each in start.directories:
        directory = each.directory
        expected = assigned_id(start.files, directory, image)
        if not each.is_online or expected in (None, directory.directory_id):
            continue
        why = assigned_elsewhere(str(expected), start.files.node_id)
        paths = [
            path
            for path, fate in start.fates.items()
            if fate.leader_reason == why and os.path.dirname(path) == directory.path
        ]
        if paths:
            names = first_names([os.path.basename(path) for path in paths], _MOST_NAMES)
            detail = (
                f"no leader: {counted(len(paths), 'partition')} of {directory.path}, {names}: "
                f"the metadata assigns them to directory.id {expected}, and meta.properties has "
                f"{directory.directory_id or 'none that counts'}"
            )
            line = written_meta(start.files, directory, image)
            yield Reason(directory.meta_path, detail, line, directory.path, False), paths


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
        line = own_line or _line_for(paths, reason, start, image, is_known)
        yield Reason(first, detail, line, "", False)


def _line_for(
    paths: Sequence[str], reason: str, start: NodeStart, image: MetadataImage, is_known: bool
) -> str:
    """Return the line that keeps partitions from being set aside, or else a copy of them."""
    path = paths[0]
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
    if PARTITION_METADATA in reason and is_known and len(paths) == 1:
        away = move_away(path, os.path.dirname(path))
        return f"{away}  # the cluster has no topic of that name"
    return f"{_copying_line(paths)}  # if the records are still wanted"


def _copying_line(paths: Sequence[str]) -> str:
    """Return the line that copies directories to a place beside their log directory; many of them
    with all of it."""
    of_log_dir: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        of_log_dir[os.path.dirname(path)].append(path)
    lines = []
    for log_dir, own in of_log_dir.items():
        target = quote(f"{log_dir.rstrip('/')}.aside")
        names = " ".join(map(quote, own))
        few = len(own) <= _MOST_COPIED
        lines.append(
            f"mkdir -p {target} && cp -a {names} {target}"
            if few
            else f"cp -a {quote(log_dir)} {target}"
        )
    return " && ".join(lines)
