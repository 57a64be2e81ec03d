"""Partitions that are found in several places: in tiered storage and on a disk, on several brokers'
disks, or twice by mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from kafkalog.errors import LogDirError
from kafkalog.format.side_files.checkpoints import TopicPartition
from kafkalog.storage.partition_log import PartitionLog, segment_directories


def with_tiered_beginnings(found: Sequence[PartitionLog]) -> list[PartitionLog]:
    """Return the logs; those that begin in tiered storage have the segments from there first.

    Raises LogDirError if it is unclear which of several belong together. Rule: docs/remote.md F558.
    """
    places: dict[TopicPartition, list[PartitionLog]] = {}
    for log in found:
        if log.topic_partition is not None and log.is_live:
            places.setdefault(log.topic_partition, []).append(log)
    joined: list[PartitionLog] = []
    replaced: list[PartitionLog] = []
    for logs in places.values():
        tiered = [log for log in logs if log.tiered_topic_id is not None]
        if tiered and len(logs) > 1:
            joined.append(_joined(tiered, [log for log in logs if log.tiered_topic_id is None]))
            replaced += logs
    gone = set(map(id, replaced))
    return [*(log for log in found if id(log) not in gone), *joined]


def _joined(tiered: Sequence[PartitionLog], on_disk: Sequence[PartitionLog]) -> PartitionLog:
    first = tiered[0]
    if len(tiered) > 1:
        raise LogDirError(
            f"partition {first.name} is in tiered storage twice, in {first.path} and in "
            f"{tiered[1].path}: one is a copy; name only one of them"
        )
    if len(on_disk) > 1:
        raise LogDirError(
            f"partition {first.name} is in tiered storage, in {first.path}, and on the disks of "
            "several brokers: give the log directories of one broker with it"
        )
    (log,) = on_disk
    if not log.segments:
        return replace(log, segments=first.segments, tiered_topic_id=first.tiered_topic_id)
    begin = log.segments[0].base_offset or 0
    before = [each for each in first.segments if (each.base_offset or 0) < begin]
    if before:
        before[-1] = replace(before[-1], next_base_offset=begin)
    return replace(log, segments=(*before, *log.segments), tiered_topic_id=first.tiered_topic_id)


def refuse_doubles(found: Sequence[PartitionLog]) -> None:
    """Raise LogDirError if a file is given twice, or if a partition has two logs that are not
    replicas of each other."""
    for path, count in _shared_paths(found).items():
        if count > 1:
            raise LogDirError(f"{path} is given twice, by itself and with its directory")
    logs_of: dict[TopicPartition, list[PartitionLog]] = {}
    for log in found:
        if log.topic_partition is not None and log.is_live:
            logs_of.setdefault(log.topic_partition, []).append(log)
    for logs in logs_of.values():
        if len(logs) > 1:
            _refuse_strangers(logs)


def _shared_paths(found: Sequence[PartitionLog]) -> Counter[str]:
    """Return how often each file is there, of the directories that several logs have files in."""
    places = Counter(place for log in found for place in segment_directories(log.segments))
    return Counter(
        segment.path
        for log in found
        if any(places[place] > 1 for place in segment_directories(log.segments))
        for segment in log.segments
    )


def _refuse_strangers(logs: Sequence[PartitionLog]) -> None:
    """Raise LogDirError for logs of one partition that are not replicas of each other."""
    places = [replica_place(log) for log in logs]
    for one, other in combinations(places, 2):
        reason = why_no_replicas(one, other)
        if reason:
            raise LogDirError(
                f"partition {logs[0].name} is there twice, in {one.path} and in {other.path}: "
                f"{reason}"
            )


def replica_place(log: PartitionLog) -> ReplicaPlace:
    """Return the place of a log, for a comparison with others."""
    log_dir = log.log_dir
    return ReplicaPlace(log.path, log_dir.cluster_id, log_dir.broker_id)


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """The place of a partition, and its broker and cluster according to the files there; None if
    not known."""

    path: str
    cluster_id: str | None
    broker_id: int | None


def why_no_replicas(one: ReplicaPlace, other: ReplicaPlace) -> str | None:
    """Return the reason why two places cannot be replicas of one partition; None if they can."""
    if one.broker_id is None or other.broker_id is None:
        return (
            "one of them is a replica or a copy, and no meta.properties says of which broker; "
            "give only one"
        )
    if one.cluster_id and other.cluster_id and one.cluster_id != other.cluster_id:
        return f"they are of different clusters, {one.cluster_id} and {other.cluster_id}"
    if one.broker_id == other.broker_id:
        return f"both say that they are of broker {one.broker_id}: one is a copy; give only one"
    return None
