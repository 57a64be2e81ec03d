"""The statuses of groups, from the rows of their partitions at the end of a history of lag: for the
job, the report, and whoever else judges groups. Rules: docs/format.md F332 and F338.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafkalog.coordination.groups.burrow import BURROW_GROUP_RANKS, BURROW_GROUP_STATUSES
from kafkalog.coordination.groups.lag_status import GROUP_RANKS, GROUP_STATUSES, LAG_ERRORS

# The columns of table `lag_history` that a status is made of.
PARTITION_COLUMNS = (
    *("cluster_id", "internal_partition", "group_id", "topic", "partition", "status"),
    *("burrow_status", "reason", "readable_records", "next_timestamp_ms", "commit_timestamp_ms"),
)
_GROUP = ("cluster_id", "internal_partition", "group_id")
_RANKS = {status.value: rank for status, rank in GROUP_RANKS.items()}
_BURROW_RANKS = {status.value: rank for status, rank in BURROW_GROUP_RANKS.items()}
_ERRORS = frozenset(status.value for status in LAG_ERRORS)


class GroupStatus(NamedTuple):
    """A group: the place of its status among those of groups, its status and the one that Burrow
    gives it; how many partitions it has, and how many of them with an error; the records left to
    read in those where that is known, the time of the first of them, and that of the last commit,
    in milliseconds; the worst partition, and the reason of its status."""

    cluster_id: str | None
    group_id: str
    rank: int
    status: str
    burrow_status: str | None
    partitions: int
    errors: int
    readable_records: int | None
    behind_since_ms: int | None
    last_commit_ms: int | None
    topic: str
    partition: int
    reason: str | None


def group_statuses(partitions: Iterable[Mapping[str, Any]]) -> list[GroupStatus]:
    """Return the status of each group, the worst first, from rows of its partitions with
    PARTITION_COLUMNS; internal_partition and burrow_status may be left out."""
    by_group: dict[tuple[object, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in partitions:
        by_group[tuple(row.get(name) for name in _GROUP)].append(row)
    return sorted(map(_status, by_group.values()), key=_worst_first)


def partition_rank(row: Mapping[str, Any]) -> int:
    """Return the place of a partition's status among the statuses of groups, the worst highest."""
    return _RANKS.get(row["status"], 0)


def _status(rows: Sequence[Mapping[str, Any]]) -> GroupStatus:
    worst = min(rows, key=_partition_order)
    statuses, burrow = ([row.get(name) for row in rows] for name in ("status", "burrow_status"))
    ranks = [_BURROW_RANKS.get(each, 0) for each in set(burrow) if each is not None]
    left, next_ms, commit_ms = (
        [row[name] for row in rows]
        for name in ("readable_records", "next_timestamp_ms", "commit_timestamp_ms")
    )
    behind = [each for each, records in zip(next_ms, left, strict=True) if records]
    records = _known(left)
    return GroupStatus(
        *(worst["cluster_id"], worst["group_id"], partition_rank(worst)),
        GROUP_STATUSES[partition_rank(worst)].value,
        BURROW_GROUP_STATUSES[max(ranks)].value if ranks else None,
        len(rows),
        sum(each in _ERRORS for each in statuses),
        sum(records) if records else None,
        min(_known(behind), default=None),
        max(_known(commit_ms), default=None),
        *(worst["topic"], worst["partition"], worst["reason"]),
    )


def _known(numbers: Sequence[int | None]) -> list[int]:
    return [each for each in numbers if each is not None]


def _partition_order(row: Mapping[str, Any]) -> tuple[int, int, str, int]:
    """Return what puts the worst partition first, of equal ones the first by name."""
    return -partition_rank(row), -_left(row["readable_records"]), row["topic"], row["partition"]


def _left(records: int | None) -> int:
    return -1 if records is None else records


def _worst_first(row: GroupStatus) -> tuple[int, int, str]:
    return -row.rank, -_left(row.readable_records), row.group_id
