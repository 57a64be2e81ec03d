"""The groups that `__consumer_offsets` under log directories holds, now or at a past time.

Rules: docs/format.md F300 to F303 and F320 to F322.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkalog.coordination.groups.group_records import (
    GROUP_RECORD_COLUMNS,
    Group,
    GroupMember,
    GroupPartition,
    LatestRecords,
    group_key,
    group_members,
    known_groups,
)
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, CommitsInEffect
from kafkalog.inspection.logs.missing_records import missing_records, missing_words
from kafkalog.log_lines import logger
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, LocalViews

NO_OFFSET = -1
_logger = logger(__name__)


class Commit(NamedTuple):
    """An offset that a group has committed."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True)
class StoredGroups:
    """Groups, their members, and their commits, by the groups' ids."""

    groups: Mapping[str, Group] = field(default_factory=dict)
    members: Mapping[str, Sequence[GroupMember]] = field(default_factory=dict)
    commits: Mapping[str, Mapping[GroupPartition, Commit]] = field(default_factory=dict)


def stored_groups(
    log_dirs: Sequence[str], logs: Sequence[PartitionLog], at_ms: int | None
) -> StoredGroups:
    """Read the groups; none without a partition of `__consumer_offsets`. Log which of its records
    are missing (F940)."""
    missing = missing_records(logs, CONSUMER_OFFSETS)
    if missing:
        words = missing_words(missing)
        _logger.warning("commits of groups: %s: consumers may begin elsewhere", words)
    offsets_logs = [log for log in logs if log.topic == CONSUMER_OFFSETS]
    if not offsets_logs:
        return StoredGroups()
    in_effect, latest = CommitsInEffect(at_ms), LatestRecords(at_ms)
    views = LocalViews(log_dirs, offsets_logs, processes=1)
    for batch in views.batches(AskedView("offset_commits", COMMIT_COLUMNS)):
        in_effect.add(batch)
    for batch in views.batches(AskedView("group_metadata", GROUP_RECORD_COLUMNS)):
        for row in batch.to_pylist():
            latest.add(row)
    rows = in_effect.rows()
    counted = [] if rows is None else rows.to_pylist()
    commits: dict[str, dict[GroupPartition, Commit]] = defaultdict(dict)
    for row in counted:
        if row["committed_offset"] is not None:
            epoch = row["leader_epoch"]
            commit = Commit(
                row["committed_offset"], -1 if epoch is None else epoch, row["metadata"] or ""
            )
            commits[row["group_id"]][row["topic"], row["partition"]] = commit
    records = latest.records()
    every = group_members(records)
    members: dict[str, list[GroupMember]] = defaultdict(list)
    for member in every:
        members[member.group.group_id].append(member)
    groups = known_groups(records, every, {group_key(row) for row in counted})
    living = {key.group_id: group for key, group in groups.items() if group.state != "Dead"}
    return StoredGroups(living, members, commits)
