"""Consumer groups as the files of log directories show them, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafkalog.coordination.groups.commit_status import CommitJudge, KnownTopic
from kafkalog.coordination.groups.group_records import (
    Group,
    GroupKey,
    GroupMember,
    GroupPartition,
    GroupRecord,
    assigned_partitions,
    group_key,
    group_members,
    known_groups,
)
from kafkalog.coordination.groups.offsets_partitions import offsets_partitions
from kafkalog.coordination.groups.share_states import ShareState, ShareStates
from kafkalog.errors import LogDirError
from kafkalog.inspection.groups.commit_reach import CommitReach, LogReach, commit_reaches
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, HAS_OPEN_COMMIT
from kafkalog.inspection.groups.complete_from import complete_from, first_timestamp_ms
from kafkalog.inspection.logs.missing_records import MissingRecords, note_missing_records
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.inspection.start.doubled_partitions import find_logs_once
from kafkalog.messages.cluster_metadata import ClusterMetadata
from kafkalog.storage.log_dir.topic_directories import topic_directories
from kafkalog.storage.names import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE
from kafkalog.storage.partition_log import PartitionLog, segment_sizes
from kafkalog.views.local_views import cluster_metadata, internal_records, view_options
from kafkalog.views.parallel import in_order
from kafkalog.views.planning.group_reads import group_reads
from kafkalog.views.reading.group_reading import GroupsRead, read_groups

# Where the other groups of clusters with old consumers are.
IN_ZOOKEEPER = (
    "groups that commit to ZooKeeper are in its files: kafkalog job consumer-lag --zookeeper DIR"
)
_Place = tuple[GroupKey, GroupPartition]


@dataclass(frozen=True)
class Reading:
    """The paths, the number of processes, and what is called with the number of bytes read."""

    log_dirs: Sequence[str]
    processes: int
    on_done: Callable[[int], None] = lambda size: None


@dataclass(frozen=True)
class GroupSources:
    """All logs under the paths; groups, their members, the commits in effect as rows of view
    `offset_commits` with has_open_commit, the member of each partition, the leaders of the
    partitions of `__consumer_offsets`, topic names by id, how far back the commits of each of these
    partitions reach, the judge of commits, and the records of these topics that the input lacks.
    Share groups commit nothing: `commits` has where they begin, and `shares` more about it."""

    logs: list[PartitionLog]
    groups: dict[GroupKey, Group]
    members: list[GroupMember]
    commits: dict[_Place, GroupRecord]
    shares: dict[_Place, ShareState]
    assigned: dict[_Place, GroupMember]
    coordinators: dict[int, int]
    topic_names: dict[str, str]
    reaches: list[LogReach]
    judge: CommitJudge
    missing: list[MissingRecords]

    @property
    def no_group(self) -> str:
        """What a command says where it knows no group; that there is none only where all commits
        are here (F940)."""
        return self.by_what_is_here("no group is known")

    def by_what_is_here(self, claim: str) -> str:
        """Return a claim about groups, limited to what is here where commits are missing."""
        is_whole = all(reach.is_whole for reach in self.commit_reaches())
        return claim if is_whole else f"{claim} by what is here of {CONSUMER_OFFSETS}"

    def commit_reaches(self) -> list[CommitReach]:
        """Return how far back commits reach, as a whole."""
        of_commits = [each for each in self.missing if each.topic == CONSUMER_OFFSETS]
        return commit_reaches(self.reaches, of_commits)


def logs_with_groups(log_dirs: Sequence[str]) -> list[PartitionLog]:
    """Return all logs under the paths. Raises LogDirError if there is no partition of
    `__consumer_offsets`."""
    logs = find_logs_once(log_dirs)
    refuse_without_groups(log_dirs, logs)
    return logs


def refuse_without_groups(log_dirs: Sequence[str], logs: Sequence[PartitionLog]) -> None:
    """Raise LogDirError if there is no partition of `__consumer_offsets` among the logs."""
    if not any(log.topic == CONSUMER_OFFSETS for log in logs):
        raise LogDirError(
            f"{', '.join(log_dirs)}: there is no partition of {CONSUMER_OFFSETS}, to which "
            f"consumer groups commit: give the log directories of all brokers ({IN_ZOOKEEPER})"
        )


def bytes_to_read(logs: Sequence[PartitionLog]) -> int:
    """Return the number of bytes that `group_sources` will read."""
    offsets_logs = [log for log in logs if log.topic == CONSUMER_OFFSETS]
    return 2 * sum(segment.size for log in offsets_logs for segment in log.segments)


def group_sources(
    reading: Reading,
    logs: list[PartitionLog],
    *,
    at_ms: int | None,
    retention_ms: int,
    with_reaches: bool = True,
) -> GroupSources:
    """Read the groups from the logs, now or at a past time. To know how far back commits reach, the
    logs are read once more. Missing records are noted for the end of the run."""
    offsets_logs = [log for log in logs if log.topic == CONSUMER_OFFSETS]
    commits: dict[_Place, GroupRecord] = {}
    latest: list[GroupRecord] = []
    reaches: list[LogReach] = []
    of_reaches = [log for log in offsets_logs if with_reaches and log.is_live]
    for found in _read_groups(reading, offsets_logs, of_reaches, at_ms):
        if isinstance(found, LogReach):
            reaches.append(found)
            continue
        for row in found.commits:
            commits[group_key(row), (row["topic"], row["partition"])] = row
        latest += found.records
    metadata = cluster_metadata(reading.log_dirs, logs, at_ms)
    topics = _known_topics(logs, metadata)
    members = group_members(latest)
    groups = known_groups(latest, {key for key, _ in commits})
    names = {topic.topic_id: topic.topic for topic in topics if topic.topic_id is not None}
    shares = _shares(reading, best_logs(logs), groups, names, at_ms)
    commits |= {place: _commit_of(place, state) for place, state in shares.items()}
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
        shares,
        assigned_partitions(members, names),
        coordinators,
        names,
        reaches,
        CommitJudge(groups, members, topics, offsets_partitions(groups, partitions), retention_ms),
        [
            *note_missing_records(logs, CONSUMER_OFFSETS),
            *note_missing_records(logs, SHARE_GROUP_STATE),
        ],
    )


def deleted_topics(log_dirs: Sequence[str], logs: list[PartitionLog]) -> set[str]:
    """Return the topics that are known to be deleted now, and not created again."""
    topics = _known_topics(logs, cluster_metadata(log_dirs, logs, None))
    living = {topic.topic for topic in topics if not topic.is_deleted}
    return {topic.topic for topic in topics} - living


def known_from_ms(logs: Sequence[PartitionLog]) -> int | None:
    """Return the time of the first record of `__consumer_offsets`, None if it has none."""
    offsets_logs = [log for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live]
    times = (first_timestamp_ms(log) for log in offsets_logs)
    return min((time for time in times if time is not None), default=None)


class _Found(NamedTuple):
    """Commits of a partition of `__consumer_offsets`, and records about its groups."""

    commits: Sequence[GroupRecord]
    records: Sequence[GroupRecord]


def _read_groups(
    reading: Reading, logs: list[PartitionLog], of_reaches: list[PartitionLog], at_ms: int | None
) -> Iterator[_Found | LogReach]:
    """Yield what each partition of `__consumer_offsets` has of groups, and then how far back each
    of some logs reaches."""
    options = view_options(reading.log_dirs, "offset_commits", subscribe=CONSUMER_OFFSETS)

    def read(item: GroupsRead | PartitionLog) -> Iterator[_Found | LogReach]:
        if isinstance(item, PartitionLog):
            _, time_ms, damaged_ranges = complete_from(item)
            yield LogReach(item.partition, time_ms, damaged_ranges)
            return
        commits, records = read_groups(item, options, at_ms)
        yield _Found([] if commits is None else commits.to_pylist(), records)

    def note(item: GroupsRead | PartitionLog) -> None:
        if isinstance(item, PartitionLog):
            reading.on_done(sum(segment_sizes(item.segments)))
        else:
            reading.on_done(item.size)

    items: list[GroupsRead | PartitionLog] = [*group_reads(options, logs), *of_reaches]
    yield from in_order(read, items, processes=reading.processes, on_done=note)


def _shares(
    reading: Reading,
    logs: Sequence[PartitionLog],
    groups: Mapping[GroupKey, Group],
    names: Mapping[str, str],
    at_ms: int | None,
) -> dict[_Place, ShareState]:
    """Return where share groups are, by `__share_group_state`."""
    found = ShareStates()
    for log in logs:
        if log.topic != SHARE_GROUP_STATE:
            continue
        for record, written_ms in internal_records(
            reading.log_dirs, SHARE_GROUP_STATE, [log], at_ms
        ):
            is_known = record.value is not None or record.is_tombstone
            if record.key is not None and record.record_type is not None and is_known:
                found.take(
                    log.log_dir.cluster_id, record.record_type, record.key, record.value, written_ms
                )
    keys = {
        (key.cluster_id, key.group_id): key
        for key, group in groups.items()
        if group.group_type == "share" and group.state != "Dead"
    }
    return {
        (key, (names.get(place.topic_id, place.topic_id), place.partition)): state
        for place, state in found.states.items()
        if (key := keys.get((place.cluster_id, place.group_id))) is not None
    }


def _commit_of(place: _Place, state: ShareState) -> GroupRecord:
    """Return where a share group begins, in the form of a commit."""
    key, (topic, partition) = place
    return {
        **dict.fromkeys((*COMMIT_COLUMNS, HAS_OPEN_COMMIT)),
        **key._asdict(),
        "topic": topic,
        "partition": partition,
        "committed_offset": state.start_offset,
        "commit_timestamp_ms": state.written_ms,
        HAS_OPEN_COMMIT: False,
    }


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
