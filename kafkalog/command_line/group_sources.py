"""What the files under log directories say of consumer groups, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from kafkalog.columns.commits_in_effect import COMMIT_COLUMNS, CommitsInEffect
from kafkalog.columns.complete_from import complete_from
from kafkalog.command_line.parallel import in_order
from kafkalog.command_line.views import reduced_view, view_options
from kafkalog.coordination.commit_status import CommitJudge, KnownTopic, offsets_partitions
from kafkalog.coordination.group_records import (
    Group,
    GroupKey,
    GroupMember,
    LatestRecords,
    Record,
    TopicPartition,
    assigned_partitions,
    group_key,
    group_members,
    known_groups,
)
from kafkalog.errors import LogDirError
from kafkalog.messages.cluster_metadata import ClusterMetadata
from kafkalog.messages.internal_records import InternalRecord, read_internal_record
from kafkalog.storage.log_dir import find_partitions
from kafkalog.storage.metadata_snapshots import snapshot_before
from kafkalog.storage.names import CLUSTER_METADATA, CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.topic_directories import topic_directories

_RECORD_COLUMNS = (
    *("cluster_id", "internal_partition", "group_id", "group_type", "record_type", "member_id"),
    *("record_offset", "record_timestamp_ms", "is_tombstone", "reason", "epoch"),
    *("validated_topology_epoch", "protocol_type", "protocol", "state_timestamp_ms"),
    *("member_state", "instance_id", "client_id", "client_host", "subscribed_topics"),
    *("subscribed_topic_regex", "server_assignor", "assigned", "members"),
)
_METADATA_COLUMNS = ("key", "value", "timestampMs")


class CompleteLog(NamedTuple):
    """From when on a partition of `__consumer_offsets` has all that counted."""

    internal_partition: int | None
    complete_from_ms: int | None
    damaged_ranges: int


@dataclass(frozen=True)
class GroupSources:
    """Groups, their members, the commits in effect as rows of view `offset_commits` with
    has_open_commit, who has which partition, who leads the partitions of `__consumer_offsets`,
    names of topics by their ids, and what judges commits; `logs` are all under the paths."""

    logs: list[PartitionLog]
    groups: dict[GroupKey, Group]
    members: list[GroupMember]
    commits: dict[tuple[GroupKey, TopicPartition], Record]
    assigned: dict[tuple[GroupKey, TopicPartition], GroupMember]
    coordinators: dict[int, int]
    topic_names: dict[str, str]
    judge: CommitJudge


def group_sources(
    log_dirs: Sequence[str], *, at_ms: int | None, retention_ms: int, processes: int
) -> GroupSources:
    """Read it, of now or of a moment. Raises LogDirError where there is no partition of
    `__consumer_offsets`."""
    logs = find_partitions(log_dirs, strict=False)
    offsets_logs = [log for log in logs if log.topic == CONSUMER_OFFSETS]
    if not offsets_logs:
        raise LogDirError(
            f"{', '.join(log_dirs)}: no partition of {CONSUMER_OFFSETS} there, which consumer "
            "groups commit to; give the log directories of all brokers"
        )
    commits = _commits(log_dirs, offsets_logs, at_ms, processes)
    latest = _latest_records(log_dirs, offsets_logs, at_ms, processes)
    metadata = cluster_metadata(log_dirs, logs, at_ms)
    topics = _known_topics(logs, metadata)
    members = group_members(latest)
    groups = known_groups(latest, {key for key, _ in commits})
    names = {topic.topic_id: topic.topic for topic in topics if topic.topic_id is not None}
    coordinators = metadata.leaders_of(CONSUMER_OFFSETS)
    partitions = {
        log.log_dir.cluster_id: {
            each.partition
            for each in offsets_logs
            if each.log_dir.cluster_id == log.log_dir.cluster_id and each.partition is not None
        }
        | coordinators.keys()
        for log in offsets_logs
    }
    return GroupSources(
        logs,
        groups,
        members,
        commits,
        assigned_partitions(members, names),
        coordinators,
        names,
        CommitJudge(groups, members, topics, offsets_partitions(groups, partitions), retention_ms),
    )


def complete_logs(logs: Sequence[PartitionLog], processes: int) -> list[CompleteLog]:
    """How far back the commits of each partition reach."""

    def reach(log: PartitionLog) -> Iterator[CompleteLog]:
        _, time_ms, damaged_ranges = complete_from(log)
        yield CompleteLog(log.partition, time_ms, damaged_ranges)

    asked = [log for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live]
    return list(in_order(reach, asked, processes=processes))


def _commits(
    log_dirs: Sequence[str], logs: list[PartitionLog], at_ms: int | None, processes: int
) -> dict[tuple[GroupKey, TopicPartition], Record]:
    def in_effect(batches: Iterator[pa.RecordBatch]) -> Iterator[list[dict[str, Any]]]:
        kept = CommitsInEffect(at_ms)
        for batch in batches:
            kept.add(batch)
        yield list(kept.rows())

    options = view_options(log_dirs, "offset_commits", subscribe=CONSUMER_OFFSETS)
    found = reduced_view(options, COMMIT_COLUMNS, in_effect, processes=processes, found=logs)
    return {
        (group_key(row), (row["topic"], row["partition"])): row for rows in found for row in rows
    }


def _latest_records(
    log_dirs: Sequence[str], logs: list[PartitionLog], at_ms: int | None, processes: int
) -> list[Record]:
    def latest(batches: Iterator[pa.RecordBatch]) -> Iterator[list[Record]]:
        kept = LatestRecords(at_ms)
        for batch in batches:
            for row in batch.to_pylist():
                kept.add(row)
        yield kept.records()

    options = view_options(log_dirs, "group_metadata", subscribe=CONSUMER_OFFSETS)
    kept = LatestRecords(at_ms)
    for records in reduced_view(options, _RECORD_COLUMNS, latest, processes=processes, found=logs):
        for record in records:
            kept.add(record)
    return kept.records()


def cluster_metadata(
    log_dirs: Sequence[str], logs: Sequence[PartitionLog], at_ms: int | None
) -> ClusterMetadata:
    """What the metadata says, with a snapshot where its log has lost its beginning."""
    metadata = ClusterMetadata()
    of_metadata = [log for log in logs if log.topic == CLUSTER_METADATA]
    snapshots = [path for log in of_metadata if (path := snapshot_before(log)) is not None]
    if snapshots:
        metadata.take(_metadata_records(snapshots, None, at_ms))
    if of_metadata:
        metadata.take(_metadata_records(log_dirs, of_metadata, at_ms))
    return metadata


def _metadata_records(
    paths: Sequence[str], found: list[PartitionLog] | None, at_ms: int | None
) -> Iterator[InternalRecord]:
    def records(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes | None, bytes | None]]:
        for batch in batches:
            for key, value, written_ms in zip(*(each.to_pylist() for each in batch), strict=True):
                if at_ms is None or (written_ms is not None and written_ms <= at_ms):
                    yield key, value

    options = view_options(paths, "records")
    # One process: the order of the log is what counts.
    rows = reduced_view(options, _METADATA_COLUMNS, records, processes=1, found=found)
    for key, value in rows:
        yield read_internal_record(CLUSTER_METADATA, key, value)


def _known_topics(logs: Sequence[PartitionLog], metadata: ClusterMetadata) -> list[KnownTopic]:
    by_directory = [
        KnownTopic(each.cluster_id, each.topic, each.topic_id, each.is_deleted)
        for each in set(topic_directories(logs))
        if each.topic is not None
    ]
    cluster_ids = {log.log_dir.cluster_id for log in logs if log.topic == CLUSTER_METADATA}
    by_metadata = [
        KnownTopic(cluster_id, name, topic_id, topic_id in metadata.deleted)
        for cluster_id in cluster_ids
        for topic_id, name in metadata.names.items()
    ]
    return [*by_directory, *by_metadata]
