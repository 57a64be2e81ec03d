"""What tasks read of `__consumer_offsets` for the lag of groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.coordination.groups.group_records import Group, GroupKey, GroupMember
from kafkalog.coordination.groups.lag_question import ChosenNames, FoundNames
from kafkalog.errors import LogDirError
from kafkalog.format.record_batch import MAX_BATCH_BYTES
from kafkalog.inspection.groups.commit_reach import LogReach
from kafkalog.inspection.groups.commits_in_effect import HAS_OPEN_COMMIT
from kafkalog.inspection.groups.complete_from import CompleteFrom, CompleteFromWalk, complete_from
from kafkalog.inspection.groups.placed_commits import PartitionFacts, PlacedShares, placed_commits
from kafkalog.inspection.lag.chosen_rows import chosen_rows, found_names, group_digests
from kafkalog.inspection.logs.missing_records import note_missing_records, refuse_unknown_of_records
from kafkalog.inspection.logs.past_copies import copies_at_time
from kafkalog.inspection.logs.replica_facts import replica_sets
from kafkalog.inspection.partitions.transactions import PastTime
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog, with_own_checkpoints
from kafkalog.views.engine import Batches, Options, Views, rows_of_view
from kafkalog.views.options.options import Mode, ReadOptions
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading.commit_reading import CommitsRead
from kafkalog.views.reading.group_reading import GroupsRead, read_groups
from kafkalog.views.reading.shared_walk import is_whole

if TYPE_CHECKING:
    from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster, ZookeeperInput

# Where the other groups of clusters with old consumers are.
IN_ZOOKEEPER = "groups that commit to ZooKeeper are in its files: kafkalog groups --zookeeper DIR"


@dataclass(frozen=True, slots=True)
class GroupsPart:
    """A partition of `__consumer_offsets` of one cluster: what to read of its groups, None where
    there is nothing, and its logs, which are looked through for gaps. `is_past_copy`: of a past
    time, the log has more than the best replica, and is read in its place (F1294)."""

    cluster_id: str | None
    partition: int | None
    read: GroupsRead | None
    logs: tuple[PartitionLog, ...]
    is_past_copy: bool = False

    @property
    def size(self) -> int:
        """The bytes that are read of groups."""
        return 0 if self.read is None else self.read.size


class PartReaches:
    """Finds how far back the commits in each log of a partition reach, on the way of the reads of
    its groups where these are of all its bytes. Rule: docs/format.md F1385."""

    def __init__(self, part: GroupsPart, options: ReadOptions) -> None:
        self._logs = part.logs
        is_usual = options.check_crcs and options.max_batch_bytes == MAX_BATCH_BYTES
        self._walks = {
            tuple(segment.path for segment in log.segments): CompleteFromWalk(log)
            for log in (part.logs if is_usual else ())
            if log.segments
        }

    def walk_of(self, copy: CommitsRead) -> CompleteFromWalk | None:
        """Return what goes along the read of a copy, None where that is not of all bytes of one of
        the logs."""
        if not all(map(is_whole, copy.segments)):
            return None
        return self._walks.get(tuple(segment.path for segment in copy.segments))

    def found(self) -> tuple[LogReach, ...]:
        """Return it, once the groups were read: logs that were not read whole are read now."""
        return tuple(LogReach(log.partition, *self._of_log(log)[1:]) for log in self._logs)

    def _of_log(self, log: PartitionLog) -> CompleteFrom:
        walk = self._walks.get(tuple(segment.path for segment in log.segments))
        if walk is not None and walk.is_at_end:
            # What was deleted meanwhile is listed again.
            with suppress(FileNotFoundError):
                return walk.found()
        return complete_from(log)


class RowsSummary(NamedTuple):
    """What is known of placed commits as a whole: the cluster, the groups that it has in the
    partitions that were read, with their members, and how many of them are where the number of
    partitions says; the groups of which a commit waits for the end of its transaction; the topics
    that groups read; the digests of groups that have rows, which of the given names rows have, and
    how far back the commits reach."""

    cluster_id: str | None
    groups: dict[GroupKey, Group]
    members: list[GroupMember]
    groups_in_place: int
    waiting: frozenset[GroupKey]
    topics: frozenset[str]
    digests: bytes
    names: FoundNames
    reaches: tuple[LogReach, ...] = ()


def group_parts(
    options: ReadOptions, views: Views, cluster_id: str | None, past: PastTime | None = None
) -> list[GroupsPart]:
    """Return the partitions of `__consumer_offsets` among the logs, for a past time the copy of
    each that has most of it. `cluster_id` is that of logs whose directory names none: old brokers
    do not write it there."""
    found = [_of_cluster(log, cluster_id) for log in views.logs if log.topic == CONSUMER_OFFSETS]
    by_place: dict[tuple[str | None, int | None], list[PartitionLog]] = defaultdict(list)
    for log in found:
        if log.is_live:
            by_place[log.log_dir.cluster_id, log.partition].append(with_own_checkpoints(log))
    past_copies = set()
    if past is not None:
        sets = [replicas for copies in by_place.values() for replicas in replica_sets(copies)]
        copies = copies_at_time(sets, views.tasks, at_ms=past.at_ms, now_ms=past.now_ms)
        for place, replicas, log in zip([*by_place], sets, copies, strict=True):
            if log is not replicas.best:
                past_copies.add(place)
                left_out = {each.path for each in by_place[place] if each is not log}
                found = [each for each in found if each.path not in left_out]
            by_place[place] = [log]
    reads = {read.place: read for read in _group_reads(options, found)}
    return [
        GroupsPart(*place, reads.get(place), tuple(by_place.get(place, ())), place in past_copies)
        for place in dict.fromkeys([*reads, *by_place])
    ]


def placed_part(
    part: GroupsPart,
    options: ReadOptions,
    at_ms: int | None,
    *,
    topic_names: dict[str, str],
    facts: PartitionFacts,
    chosen: ChosenNames,
    shares: PlacedShares,
) -> tuple[pa.Table, RowsSummary]:
    """Return the chosen commits of a partition's groups, now or at a past time, with
    PLACED_SCHEMA."""
    on_the_way = PartReaches(part, options)
    commits, records = (
        (None, [])
        if part.read is None
        else read_groups(part.read, options, at_ms, on_the_way.walk_of)
    )
    reaches = on_the_way.found()
    times = [reach.complete_from_ms for reach in reaches if reach.complete_from_ms is not None]
    facts = facts._replace(complete_from_ms=max(times, default=None))
    placed = placed_commits(commits, records, topic_names, facts, shares)
    rows = chosen_rows(placed.rows, chosen)
    return rows, RowsSummary(
        *(part.cluster_id, placed.groups, placed.members, placed.groups_in_place),
        _waiting_groups(placed.rows),
        frozenset(pc.unique(placed.rows["topic"]).to_pylist()),
        *(group_digests(rows), found_names(rows, chosen), reaches),
    )


def _waiting_groups(rows: pa.Table) -> frozenset[GroupKey]:
    """Return the groups with a commit that waits for the end of its transaction, of rows with
    PLACED_SCHEMA."""
    found = rows.select([*GroupKey._fields, HAS_OPEN_COMMIT])
    waits = found.filter(found[HAS_OPEN_COMMIT]).select(list(GroupKey._fields))
    return frozenset(GroupKey(**row) for row in waits.to_pylist())


def _group_reads(options: ReadOptions, found: list[PartitionLog]) -> list[GroupsRead]:
    """Return a read for each partition of `__consumer_offsets`, of all its copies. `options` are of
    view `offset_commits`; `found` are the logs under the paths."""
    copies: dict[tuple[str | None, int | None], list[CommitsRead]] = defaultdict(list)
    for read in chain.from_iterable(planned_groups(options, found)):
        if isinstance(read, CommitsRead):
            first = read.segments[0]
            copies[first.cluster_id, first.partition].append(read)
    return [GroupsRead(tuple(reads)) for reads in copies.values()]


def refuse_without_commits(log_dirs: Sequence[str], logs: Sequence[PartitionLog]) -> None:
    """Raise LogDirError where none of the logs has commits of consumer groups."""
    if all(log.topic != CONSUMER_OFFSETS for log in logs):
        raise LogDirError(
            f"{', '.join(log_dirs)}: there is no partition of {CONSUMER_OFFSETS}, to which "
            f"consumer groups commit: give the log directories of all brokers ({IN_ZOOKEEPER})"
        )


def optional_zookeeper(patterns: Sequence[str], chroot: str | None) -> ZookeeperInput | None:
    """Return ZooKeeper's files that paths and globs name, None without any path, for which nothing
    about ZooKeeper is imported. Raises LogDirError for a path without files of ZooKeeper's."""
    if not patterns:
        return None
    from kafkalog.questions.zookeeper.zookeeper_cluster import zookeeper_input

    return zookeeper_input(patterns, Mode.PERMISSIVE.value, chroot)


def cluster_of_groups(
    old: ZookeeperInput | None, log_dirs: Sequence[str], logs: Sequence[PartitionLog]
) -> ZookeeperCluster | None:
    """Return the cluster whose groups commit to ZooKeeper, None without its files. Raises
    LogDirError where no log has commits either, and as ZookeeperCluster does."""
    if old is None:
        refuse_without_commits(log_dirs, logs)
        return None
    from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster

    return ZookeeperCluster(old, {log.log_dir.cluster_id for log in logs})


def known_names(views: Views, zookeeper: ZookeeperCluster | None) -> list[dict[str, Any]]:
    """Return each group_id and topic that has commits, once."""
    columns = ("group_id", "topic")
    schema = arrow_schema("offset_commits", columns)

    def distinct(batches: Batches) -> Batches:
        found = pa.Table.from_batches(batches, schema).group_by(list(columns)).aggregate([])
        yield from found.select(columns).cast(schema).to_batches()

    options: Options = {"subscribe": CONSUMER_OFFSETS}
    found = [*rows_of_view(views, "offset_commits", columns, distinct, schema, options)]
    for batch in () if zookeeper is None else zookeeper.commits(columns):
        found += batch.to_pylist()
    return found


def refuse_unknown_groups(views: Views, option: str, unknown: Iterable[str]) -> None:
    """Raise OptionError if there are such groups, and LogDirError where records are missing that
    may be about them. `option` is the one that named them."""
    names = [*unknown]
    missing = note_missing_records(views.logs, CONSUMER_OFFSETS) if names else []
    refuse_unknown_of_records(
        *(option, "group", names),
        lambda: {row["group_id"] for row in known_names(views, None)},
        *(missing, f" ({IN_ZOOKEEPER})"),
    )


def _of_cluster(log: PartitionLog, cluster_id: str | None) -> PartitionLog:
    if log.log_dir.cluster_id is not None or cluster_id is None:
        return log
    return replace(log, log_dir=replace(log.log_dir, cluster_id=cluster_id))
