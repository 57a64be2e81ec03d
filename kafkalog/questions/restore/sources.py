"""What was given: the copies of each partition, one incarnation of its topic at a time, and the
cluster's metadata as of the moment. Rules: docs/restore.md F1036, F1041 and F1042.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from sys import intern

from kafkalog.coordination.metadata.image import END, MetadataImage, Moment
from kafkalog.errors import CorruptDataError, LogDirError
from kafkalog.inspection.metadata.copies import MetadataCopy, best_copy, copies_among
from kafkalog.inspection.metadata.replay import image_at
from kafkalog.questions.restore.partitions.partition_plans import Copy
from kafkalog.questions.restore.tiers import PartitionKey, found_logs, with_beginning
from kafkalog.storage.files.files import list_directory
from kafkalog.storage.files.unreadable_input import UnreadableInput, unread_from_now
from kafkalog.storage.log_dir.listed_logs import listed_log
from kafkalog.storage.names import CLUSTER_METADATA, partition_name
from kafkalog.storage.partition_log import (
    PartitionLog,
    segment_sizes,
    topic_id,
    without_checkpoints,
)


@dataclass(frozen=True, slots=True)
class MetadataEnd:
    """What a copy of the metadata has at its end, as far as a restore must go beyond it: of large
    clusters there are as many images as disks, and they are not kept."""

    topics: Mapping[str, str]
    leader_epochs: Mapping[PartitionKey, int]
    next_producer_id: int

    @classmethod
    def of(cls, image: MetadataImage) -> MetadataEnd:
        """Return it from the image."""
        ids = image.tables["producer_ids"].get(())
        return cls(
            {topic_id: row["topic"] for (topic_id,), row in image.tables["topic"].items()},
            {key: row["leader_epoch"] for key, row in image.tables["partition"].items()},
            0 if ids is None else int(ids["next_producer_id"]),
        )


@dataclass
class Sources:
    """The given disks, and tiered storage at `tier_paths`. `copies` has the logs by partition,
    `unidentified` those whose topic id no file gives, `unread` what cannot be read of all this."""

    paths: Sequence[str]
    metadata: Sequence[MetadataCopy]
    copies: Mapping[PartitionKey, Sequence[Copy]]
    unidentified: Sequence[PartitionLog]
    log_dirs: Sequence[str]
    tier_paths: Sequence[str] = ()
    unread: UnreadableInput | None = None

    @property
    def size(self) -> int:
        """Bytes of all logs."""
        return sum(
            sum(segment_sizes(copy.log.segments))
            for copies in self.copies.values()
            for copy in copies
        )

    def topics(self) -> set[str | None]:
        """Return the topics that the metadata or the logs name."""
        logs = [copy.log for copies in self.copies.values() for copy in copies]
        return {
            *(topic for end in self.ends for topic in end.topics.values()),
            *(log.topic for log in logs),
        }

    @cached_property
    def best(self) -> MetadataCopy:
        """The copy of the metadata that counts."""
        return best_copy(self.metadata)

    @cached_property
    def coverage(self) -> dict[int | None, int]:
        """The time of the last record of each node's copy of the metadata, by node."""
        return {copy.node_id: copy.walk.last_ms for copy in self.metadata}

    @property
    def covered_by_all_ms(self) -> int:
        """The last moment that every disk covers."""
        return min(self.coverage.values())

    def copy_at(self, as_of_ms: int) -> MetadataCopy:
        """Return the best copy that has the metadata of a moment. Raises LogDirError where none
        has."""
        ordered = sorted(self.metadata, key=lambda copy: copy.position, reverse=True)
        reasons = []
        for copy in ordered:
            try:
                image_at(copy.log, Moment(time_ms=as_of_ms))
            except (LogDirError, CorruptDataError) as error:
                reasons.append(str(error))
                continue
            return copy
        raise LogDirError(f"no copy has the cluster's metadata as of then: {'; '.join(reasons)}")

    @cached_property
    def ends(self) -> list[MetadataEnd]:
        """What each copy of the metadata has at its end."""
        return [MetadataEnd.of(image_at(copy.log, END).image) for copy in self.metadata]

    def forget_logs(self) -> None:
        """Forget the logs, and what metadata has of each partition: a plan has all that counts."""
        self.copies = {}
        self.__dict__.pop("ends", None)

    def copies_of(self, wanted: str) -> list[Copy]:
        """Return the copies of a topic's partitions."""
        return [each for key, copies in self.copies.items() if key[0] == wanted for each in copies]

    @cached_property
    def raft_epoch(self) -> int:
        """The highest epoch of a controller that any copy has seen."""
        states = [copy.quorum_state for copy in self.metadata]
        return max(
            *(copy.position[0] for copy in self.metadata),
            *(state.leader_epoch for state in states if state),
            0,
        )


def sources_of(paths: Sequence[str]) -> Sources:
    """Return what is under the paths. Raises LogDirError where no copy of the metadata is there, or
    copies of several clusters are."""
    unread = unread_from_now()
    given = found_logs(paths)
    found = given.on_disk
    metadata = copies_among(log for log in found if log.is_live)
    if not metadata:
        advice = (
            "also give metadata.log.dir of a controller: tiered storage has no topics, groups and "
            "configs"
            if given.in_tier and not found
            else "give the log directories, and metadata.log.dir, of the nodes; clusters with "
            "ZooKeeper, which have none, are not restored"
        )
        raise LogDirError(f"{', '.join(paths)}: there is no {CLUSTER_METADATA}-0: {advice}")
    clusters = {copy.cluster_id: copy.path for copy in metadata}
    if len(clusters) > 1:
        raise LogDirError(f"disks of several clusters: {'; '.join(clusters.values())}")
    data = [log for log in found if log.topic != CLUSTER_METADATA and log.topic is not None]
    log_dirs = sorted({log.log_dir.path for log in found})
    covered = {copy.node_id: copy.walk.last_ms for copy in metadata}
    by_key: dict[PartitionKey, list[Copy]] = defaultdict(list)
    unidentified = []
    for log in [*(log for log in data if log.is_live), *_marked_logs(log_dirs, data)]:
        identity = topic_id(log)
        if identity is None or log.partition is None:
            unidentified.append(log)
            continue
        identity = intern(identity)
        whole = with_beginning(log, given.in_tier.get((identity, log.partition)))
        copy = Copy(whole, covered.get(log.log_dir.broker_id))
        by_key[identity, log.partition].append(copy)
    for key, log in given.in_tier.items():
        if key not in by_key:
            by_key[key].append(Copy(log, None))
    return Sources(paths, metadata, by_key, unidentified, log_dirs, given.tier_paths, unread)


def _marked_logs(log_dirs: Sequence[str], data: Sequence[PartitionLog]) -> list[PartitionLog]:
    """Return the logs of directories that a broker has marked: of a topic that was deleted after
    the moment, they are all that is left."""
    places = {log.log_dir.path: log.log_dir for log in data}
    found = []
    for path in log_dirs:
        for entry in list_directory(path):
            name = partition_name(entry.name) if entry.is_directory else None
            if name is None or name.mark not in ("delete", "stray") or path not in places:
                continue
            log_dir = without_checkpoints(places[path])
            directory = os.path.join(path, entry.name)
            log = listed_log(directory, list_directory(directory), log_dir, path)
            found.append(replace(log, topic=name.topic, partition=name.partition))
    return found
