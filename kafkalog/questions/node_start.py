"""Does a node start on a version of Kafka, which of its directories does it use, and what becomes
of its partitions?

Tables: node_starts, a row per node; log_dir_starts, a row per log directory; and the columns of
table recovery_plan that the node decides. Rules: docs/format.md F960 to F973.
"""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafkalog.coordination.metadata.image import MetadataImage
from kafkalog.coordination.metadata.leader_election import StartingBroker
from kafkalog.coordination.metadata.release_refusals import Effect, property_refusals
from kafkalog.coordination.metadata.releases import nearest_release, newest_release, started_release
from kafkalog.coordination.zookeeper.znode_image import ZnodeImage
from kafkalog.inspection.groups.coordinator_loading import CoordinatorLoad
from kafkalog.inspection.metadata.assigned_partitions import cluster_images
from kafkalog.inspection.metadata.copies import MetadataCopy
from kafkalog.inspection.metadata.quorum import Quorum
from kafkalog.inspection.start.costly_logs import (
    padded_time_indexes,
    starts_beyond_ends,
    stopped_coordinators,
)
from kafkalog.inspection.start.node_directories import NodeFiles, nodes_of
from kafkalog.inspection.start.node_start import NodeStart, judged_node
from kafkalog.inspection.start.partition_fates import unrecorded
from kafkalog.inspection.start.permissions import BrokerUser
from kafkalog.inspection.start.reasons import Reason
from kafkalog.inspection.start.release_start import ReleaseStart, release_start
from kafkalog.inspection.start.restored_controllers import controllers_behind, forgotten_epochs
from kafkalog.inspection.zookeeper.cluster_trees import cluster_tree
from kafkalog.questions.election_losses import LOST
from kafkalog.questions.fate_rows import partition_rows
from kafkalog.questions.groups.coordinators import CoordinatorSettings
from kafkalog.storage.files.files import readable_entries
from kafkalog.storage.log_dir.jars import Jars
from kafkalog.storage.log_dir.log_dir import is_log_dir
from kafkalog.storage.log_dir.other_entries import absent_partitions, given_log_dirs
from kafkalog.storage.log_dir.server_properties import ServerProperties
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.words import counted, first_names

NODES, DIRECTORIES = "node_starts", "log_dir_starts"
LAST_WITH_ZOOKEEPER = "3.9"
_MOST_NAMES = 5
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """The version that starts, None for the newest that opens such directories; what
    server.properties says; the user of the broker, None for the owner of most files; the jars on
    its class path, None if they are not known; and data directories of ZooKeeper, with the path
    where the cluster begins in it."""

    kafka: str | None = None
    server: ServerProperties | None = None
    user: BrokerUser | None = None
    jars: Jars | None = None
    zookeeper: Sequence[str] = ()
    chroot: str | None = None

    def coordinators(self, nodes: Sequence[NodeFiles]) -> CoordinatorSettings:
        """Return the coordinators of the version that starts on nodes, or of the nearest one that
        is known."""
        settings = self.server.values if self.server is not None else {}
        protocols = settings.get("group.coordinator.rebalance.protocols", "")
        release = nearest_release(started_release(self.version_of(nodes)))
        return CoordinatorSettings(release, has_new_groups="consumer" in protocols)

    def version_of(self, nodes: Sequence[NodeFiles]) -> str:
        """Return the version that starts on nodes."""
        with_zookeeper = nodes and not any(each.is_of_kraft for each in nodes)
        return self.kafka or (LAST_WITH_ZOOKEEPER if with_zookeeper else newest_release())

    @property
    def refused_settings(self) -> bool:
        """Whether server.properties has values with which the version does not start."""
        if self.server is None:
            return False
        refused = property_refusals(self.server.values, started_release(self.kafka))
        return any(each.effect is Effect.ENDS for each in refused)


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """What becomes of a node, and the version that this is for."""

    start: NodeStart
    kafka_version: str
    release: ReleaseStart

    @property
    def name(self) -> str:
        node_id = self.start.files.node_id
        return "the node" if node_id is None else f"node {node_id}"

    @property
    def is_conditional(self) -> bool:
        """Whether the node starts only with classes that are not Kafka's."""
        return self.start.broker_starts and bool(self.start.plugins)

    @property
    def condition(self) -> str:
        """Which classes the node needs, in words."""
        return f"ONLY IF its class path has {first_names(self.start.plugins, _MOST_NAMES)}"

    def row(self) -> Row:
        """Return the row of table `node_starts`."""
        start, release = self.start, self.release
        return {
            "input_path": start.directories[0].directory.path,
            "node_id": start.files.node_id,
            "cluster_id": start.files.cluster_id,
            "kafka_version": self.kafka_version,
            "broker_starts": None if self.is_conditional else start.broker_starts,
            "process_ends": None if self.is_conditional else not start.stays_up,
            "reasons": [reason.row() for reason in start.reasons],
            "metadata_version": release.metadata_version,
            "metadata_release": release.metadata_release,
            "least_kafka_version": release.least_version,
            "is_downgrade": release.is_downgrade,
            "notices": [notice.row() for notice in start.notices],
            "assumed": [*self.release.assumed, *start.assumed, *start.unknown],
        }

    def directory_rows(self) -> Iterator[Row]:
        """Yield the rows of table `log_dir_starts`."""
        for each in self.start.directories:
            first = next((it for it in each.reasons if not it.ends_process), None)
            yield {
                "input_path": each.directory.path,
                "node_id": self.start.files.node_id,
                "cluster_id": self.start.files.cluster_id,
                "log_dir": each.directory.path,
                "directory_id": each.directory.directory_id,
                "is_online": each.is_online,
                "has_metadata": each.has_metadata,
                "reason": None if first is None else first.reason,
                "file": None if first is None else first.file,
                "what_to_do": None if first is None else first.what_to_do,
                "deleted_directories": each.deleted_directories,
            }


@dataclass(frozen=True, slots=True)
class NodeAnswers:
    """The nodes among the log directories, and their partitions, rows of table `recovery_plan`;
    `absent` are the brokers of their clusters that were not given."""

    nodes: Sequence[NodeAnswer] = ()
    rows: Sequence[Row] = field(default_factory=list)
    absent: Sequence[int] = ()
    # Whether controllers can lead that lack metadata of other nodes.
    gives_up_metadata: bool = False

    @property
    def has_findings(self) -> bool:
        """Whether a node does not start, starts only under a condition, or does not use a
        directory, and whether metadata can be given up."""
        return self.gives_up_metadata or any(
            not each.start.broker_starts
            or each.is_conditional
            or _offline(each)
            or each.start.files.made_directories
            for each in self.nodes
        )

    @property
    def knows_metadata(self) -> bool:
        """Whether the metadata of each node says what becomes of its partitions."""
        return all(each.start.knows_metadata for each in self.nodes)

    def lines(self) -> Iterator[str]:
        """Yield the sentences about the nodes, and below each the reasons with the lines to
        type."""
        for each in self.nodes:
            if each.start.files.is_unknown and not self._has_own_reasons(each):
                # Copies of logs, which no node is known of: their rows say all.
                continue
            yield _sentence(each)
            shown = {(reason.file, reason.what_to_do) for reason in each.start.reasons}
            yield from map(_reason_line, each.start.reasons)
            for offline in _offline(each):
                for reason in offline:
                    if (reason.file, reason.what_to_do) not in shown:
                        yield f"  offline: {_reason_line(reason).strip()}"
            for path in each.start.files.made_directories:
                yield (
                    f"  {path}: the log directory does not exist: the broker makes it, and its "
                    "partitions BEGIN EMPTY\n    mount its disk before the start"
                )
            for notice in each.start.notices:
                if (notice.file, notice.what_to_do) in shown:
                    continue
                place = (
                    f"{notice.file}: " if notice.file and notice.file not in notice.reason else ""
                )
                yield f"  {place}{notice.reason}\n    {notice.what_to_do}"
            when = "within minutes" + ("" if each.start.broker_starts else " of its next start")
            yield from self._partition_lines(each, when)
            deleted = [path for it in each.start.directories for path in it.deleted_directories]
            if deleted:
                names = first_names(deleted, _MOST_NAMES)
                yield f"  deleted for good {when}: {names}"
            for words in (*each.release.assumed, *each.start.assumed):
                yield f"  assumed: {words}"
        yield from self._cluster_lines()

    def _cluster_lines(self) -> Iterator[str]:
        """Yield what is about several nodes together: elections, and nodes that are not here."""
        if any(row.get(LOST) for row in self.rows):
            given = [it.path for each in self.nodes for it in each.start.files.directories]
            yield (
                "the replicas differ: a follower truncates what its leader does not have, and who "
                "leads depends on the order in which the brokers start; what each leader loses, "
                f"and which brokers to keep stopped:\n  kafkalog replicas {shlex.join(given)}"
            )
        if self.absent:
            yield (
                f"not given: the log directories of {first_names([*map(str, self.absent)], 5)}, "
                "which are brokers of the cluster by its metadata: with those of all nodes it is "
                "also judged who leads then, and what elections lose"
            )

    def _has_own_reasons(self, answer: NodeAnswer) -> bool:
        """Return whether something else than a log keeps a node from starting, or a directory from
        being used."""
        of_logs = {row["directory"] for row in self.rows if row["start_error"] is not None}
        reasons = (reason for each in answer.start.directories for reason in each.reasons)
        return any(reason.file not in of_logs for reason in reasons)

    def _partition_lines(self, answer: NodeAnswer, when: str) -> Iterator[str]:
        """Yield which logs are without a record, and what retention deletes as its settings
        say."""
        rows = _below({each.path for each in answer.start.files.directories}, self.rows)
        empty = [each for each in rows if has_lost_all(each)]
        for row in empty[:_MOST_NAMES]:
            first, count = row["log_end_offset"], row["missing_offsets"]
            yield (
                f"  {row['topic']}-{row['partition']} begins empty: offsets {first} to "
                f"{first + count - 1} are in no file of its directory"
            )
        if len(empty) > _MOST_NAMES:
            yield f"  {len(empty) - _MOST_NAMES:,} more partitions begin empty like that"
        found: defaultdict[str, list[int]] = defaultdict(list)
        for row in rows:
            soon = row["deleted_soon"]
            if soon and soon["is_expected"]:
                found[soon["reason"]].append(soon["records"])
        for reason, records in found.items():
            yield (
                f"  retention deletes {counted(sum(records), 'record')} of "
                f"{counted(len(records), 'partition')} {when}, by {reason}"
            )


def has_lost_all(row: Mapping[str, Any]) -> bool:
    """Return whether a log that is used is empty at the start and was not before, by the files
    beside it. Rule: docs/format.md F922."""
    return bool(
        row["missing_offsets"]
        and row["log_start_offset"] == row["log_end_offset"]
        and not (row.get("is_set_aside") or row.get("begins_empty"))
    )


@dataclass(frozen=True, slots=True)
class FoundNodes:
    """The nodes whose log directories were found, the metadata of their clusters by id, what it was
    taken from where there are several copies, and the metadata of the cluster with ZooKeeper, None
    without its files."""

    nodes: Sequence[NodeFiles]
    images: Mapping[str | None, MetadataImage]
    taken_from: Mapping[str | None, str] = field(default_factory=dict)
    zookeeper: MetadataImage | None = None

    @classmethod
    def of(
        cls, log_dirs: Sequence[str], logs: Sequence[PartitionLog], request: NodeRequest
    ) -> FoundNodes:
        """Return the nodes of the log directories among paths; `logs` were found under them. Logs
        that were given by their own paths have no node. Raises as `cluster_tree` does."""
        named = set() if request.server is None else set(request.server.log_dirs)
        paths = [
            path
            for path in (sorted(given_log_dirs(log_dirs, logs)) if log_dirs else [])
            # Tiered storage, and an empty directory, is not a log directory by itself.
            if os.path.realpath(path) in named or is_log_dir(readable_entries(path))
        ]
        images, taken_from = _leading_images(logs)
        nodes = nodes_of(paths, request.server, _owners(images)) if paths else []
        ids = {node.cluster_id for node in nodes}
        tree = cluster_tree(request.zookeeper, ids, request.chroot) if nodes else None
        zookeeper = None if tree is None else ZnodeImage.of(tree.facts()).image
        return cls(nodes, images, taken_from, zookeeper)


def node_answers(
    found: FoundNodes,
    logs: Sequence[PartitionLog],
    request: NodeRequest,
    plan: Sequence[Row],
    loads: Sequence[CoordinatorLoad] = (),
) -> NodeAnswers:
    """Return what becomes of the nodes; `plan` has the rows of view `recovery_plan` of the logs,
    which are completed in place, because there can be many, and `loads` what coordinators make of
    theirs. Raises OptionError for what is not a version."""
    forgotten = [*forgotten_epochs(logs)]

    def judged(found: FoundNodes) -> list[NodeAnswer]:
        return [_answer(node, found, logs, request, plan, forgotten) for node in found.nodes]

    answers = judged(found)
    ended = [
        it.path
        for each in answers
        if not each.start.broker_starts
        for it in each.start.files.directories
    ]
    if ended and len(answers) > 1:
        # Who ends does not lead the controllers.
        images, taken_from = _leading_images(logs, ended)
        answers = judged(replace(found, images=images, taken_from=taken_from))
    behind = [*controllers_behind(logs, ended)]
    for each in answers:
        paths = {it.path for it in each.start.files.directories}
        listed = [it.path for it in each.start.files.directories if it.is_there]
        absent = unrecorded(each.start.files, absent_partitions(listed, logs))
        each.start.decide(_starting_with(each, answers), absent)
        each.start.notices += (reason for reason in behind if reason.directory in paths)
        own = _below(paths, plan)
        each.start.notices += (*starts_beyond_ends(own), *padded_time_indexes(own))
        each.start.notices += stopped_coordinators(
            load for load in loads if os.path.dirname(load.path) in paths
        )
    rows = partition_rows([each.start for each in answers], logs, plan, loads)
    return NodeAnswers(answers, rows, _absent(found), gives_up_metadata=bool(behind))


def _absent(found: FoundNodes) -> list[int]:
    """Return the brokers of the nodes' clusters that are none of the nodes."""
    given = {(node.cluster_id, node.node_id) for node in found.nodes}
    clusters = {cluster_id for cluster_id, node_id in given if node_id is not None}
    return sorted(
        node_id
        for cluster_id in clusters & {*found.images}
        for (node_id,) in found.images[cluster_id].tables["broker"]
        if (cluster_id, node_id) not in given
    )


def _starting_with(answer: NodeAnswer, answers: Sequence[NodeAnswer]) -> list[StartingBroker]:
    """Return the other nodes of the cluster that were given and start, too."""
    return [
        each.start.starting
        for each in answers
        if each is not answer
        and each.start.broker_starts
        and each.start.starting is not None
        and each.start.files.cluster_id == answer.start.files.cluster_id
    ]


def stop_lines(log_dirs: Sequence[str], logs: Sequence[PartitionLog]) -> Iterator[str]:
    """Yield a line for each file beside logs that keeps a node from starting, or takes a log
    directory offline; what is in logs is not looked at."""
    request = NodeRequest()
    for answer in node_answers(FoundNodes.of(log_dirs, logs, request), logs, request, []).nodes:
        reasons = [*answer.start.reasons, *(each for it in _offline(answer) for each in it)]
        for reason in dict.fromkeys(reasons):
            verb = "ends at it" if reason.ends_process else f"does without {reason.directory}"
            yield (
                f"start: {reason.file}: {reason.reason}; a broker {verb}: kafkalog recover shows "
                "what mends it"
            )


def _leading_images(
    logs: Sequence[PartitionLog], ended: Collection[str] = ()
) -> tuple[Mapping[str | None, MetadataImage], Mapping[str | None, str]]:
    """Return by cluster id the metadata that counts once the nodes have started, and the words that
    say where it is from if there are several copies; who is in the log directories `ended` does not
    lead. Rule: docs/format.md F1208."""
    taken_from = {}

    def leading(copies: Sequence[MetadataCopy]) -> MetadataCopy:
        quorum = Quorum(copies)
        if len(copies) == 1:
            return copies[0]
        copy = quorum.led_by_least(ended)
        why = "no majority of the controllers is here, and it has the most"
        if quorum.led_by_majority(ended):
            why = "whichever majority of the controllers here elects a leader has at least this"
        taken_from[copy.cluster_id] = (
            f"the cluster begins with the metadata of node {copy.node_id}, {copy.path} up to "
            f"offset {copy.position[1]}: {why}"
        )
        return copy

    return cluster_images(logs, leading), taken_from


def _owners(images: Mapping[str | None, MetadataImage]) -> dict[str, tuple[str | None, int]]:
    return {
        directory_id: (cluster_id, node_id)
        for cluster_id, image in images.items()
        for (node_id,), row in image.tables["broker"].items()
        for directory_id in row["log_dirs"]
    }


def _answer(
    node: NodeFiles,
    found: FoundNodes,
    logs: Sequence[PartitionLog],
    request: NodeRequest,
    plan: Sequence[Mapping[str, Any]],
    forgotten: Sequence[Reason],
) -> NodeAnswer:
    paths = {each.path for each in node.directories}
    rows = _below(paths, plan)
    main = node.metadata_directory
    # Where meta.properties is missing beside the metadata, its cluster has no id.
    own = main.cluster_id if main is not None and main.has_metadata else node.cluster_id
    image = found.images.get(own, found.images.get(node.cluster_id))
    release = release_start(node, image, logs, request.version_of([node]))
    more = [*release.reasons, *(each for each in forgotten if each.directory in paths)]
    nearest = nearest_release(started_release(release.version))
    start = judged_node(
        *(node, image, rows, request.user, request.jars, nearest, more), zookeeper=found.zookeeper
    )
    words = found.taken_from.get(node.cluster_id)
    if words is not None:
        start.assumed = [*start.assumed, words]
    return NodeAnswer(start, release.version, release)


def _below(paths: Collection[str], plan: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in plan if os.path.dirname(row["directory"]) in paths]


def _offline(answer: NodeAnswer) -> list[list[Reason]]:
    """Return the reasons of each directory that is offline."""
    return [
        [reason for reason in each.reasons if not reason.ends_process]
        for each in answer.start.directories
        if not each.is_online
    ]


def _sentence(answer: NodeAnswer) -> str:
    start = answer.start
    node = f"{answer.name[0].upper()}{answer.name[1:]}"
    if not start.broker_starts:
        reasons = counted(len(start.reasons), "reason")
        if start.stays_up:
            words = "stays up, and SERVES NOTHING,"
            return f"{node} {words} with Kafka {answer.kafka_version}, for {reasons}:"
        return f"{node} does NOT start with Kafka {answer.kafka_version}, for {reasons}:"
    offline = [each.directory.path for each in start.directories if not each.is_online]
    words = f"{node} starts with Kafka {answer.kafka_version}"
    if answer.is_conditional:
        words = f"{node} starts {answer.condition}, with Kafka {answer.kafka_version}"
    if offline:
        words += f", WITHOUT {first_names(offline, _MOST_NAMES)}"
    if not start.knows_metadata:
        words += "; what becomes of its partitions is NOT KNOWN:"
    return words


def _reason_line(reason: Reason) -> str:
    return f"  {reason.file}: {reason.reason}\n    {reason.what_to_do}"
