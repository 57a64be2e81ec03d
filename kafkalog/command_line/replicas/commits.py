"""Commits in each replica of a partition of `__consumer_offsets`, and those that are lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow.compute as pc

from kafkalog.coordination.groups.group_records import GroupPartition
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, CommitsInEffect
from kafkalog.inspection.logs.missing_records import note_missing_records
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.inspection.partitions.leader_choices import Loss, Replica
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, LocalViews
from kafkalog.views.parallel import in_order

CommitRow = Mapping[str, Any]
# A group, a topic and a partition of it.
_Place = tuple[str, str, int]
# The commits in effect of each partition.
Positions = Mapping[GroupPartition, Sequence[CommitRow]]


class LostCommit(NamedTuple):
    """A commit that a replica has; `remaining` is the one that counts without it, None for none."""

    broker_id: int | None
    commit: CommitRow
    remaining: int | None


def commits_of(log: PartitionLog, end_offset: int | None = None) -> dict[_Place, CommitRow]:
    """Return the commits in effect by a log of `__consumer_offsets` up to an offset."""
    kept = CommitsInEffect()
    views = LocalViews([log.path], [log], processes=1)
    for batch in views.batches(AskedView("offset_commits", COMMIT_COLUMNS)):
        if end_offset is not None:
            effective = batch.column("effective_offset")
            batch = batch.filter(pc.fill_null(pc.less(effective, end_offset), True))
        kept.add(batch)
    rows = kept.rows()
    found: list[dict[str, Any]] = [] if rows is None else rows.to_pylist()
    return {
        (row["group_id"], row["topic"], row["partition"]): row
        for row in found
        if row["committed_offset"] is not None
    }


class ReplicaCommits:
    """The commits of all replicas of one partition of `__consumer_offsets`."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._replicas = replicas
        self._all = [commits_of(replica.log) for replica in replicas]

    def lost(self, leader: int | None, loss: Loss) -> Iterator[LostCommit]:
        """Yield the commits whose records are lost if this replica leads, or none with None, and
        that differ from what it has itself."""
        remaining = {} if leader is None else self._remaining(leader)
        for replica, commits in zip(self._replicas, self._all, strict=True):
            spans = [
                (each.first_offset, each.last_offset)
                for each in loss.ranges
                if replica.broker_id in each.brokers
            ]
            for place, commit in sorted(commits.items()):
                if not any(first <= commit["effective_offset"] <= last for first, last in spans):
                    continue
                left = remaining.get(place)
                offset = None if left is None else left["committed_offset"]
                if offset != commit["committed_offset"]:
                    yield LostCommit(replica.broker_id, commit, offset)

    def _remaining(self, leader: int) -> dict[_Place, CommitRow]:
        chosen = self._replicas[leader]
        if chosen.plan.cuts:
            return commits_of(chosen.log, chosen.state.log_end)
        return self._all[leader]


def positions(logs: Sequence[PartitionLog], processes: int) -> Positions:
    """Return the commits in effect by the best replicas of `__consumer_offsets`; records that no
    replica has are noted for the end of the run."""
    note_missing_records(logs, CONSUMER_OFFSETS)
    best = best_logs([log for log in logs if log.topic == CONSUMER_OFFSETS])
    found: dict[GroupPartition, list[CommitRow]] = defaultdict(list)

    def read(log: PartitionLog) -> list[CommitRow]:
        return list(commits_of(log).values())

    for row in in_order(read, best, processes=processes):
        found[row["topic"], row["partition"]].append(row)
    return found
