"""The groups in a partition of `__consumer_offsets`: the commits that count and the last records
about its groups, in one pass over its segments.

What a group commits and what its coordinator writes about it are all in one partition, so that a
task knows everything about a group. Rules: docs/format.md F300 to F303 and F320 to F324.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from kafkalog.coordination.groups.group_records import GroupRecord, LatestRecords
from kafkalog.inspection.groups.commit_columns import LastCommits
from kafkalog.inspection.groups.commits_in_effect import (
    COMMIT_COLUMNS,
    CommitsInEffect,
    commits_that_count,
)
from kafkalog.inspection.groups.group_metadata import group_rows
from kafkalog.inspection.groups.offset_commits import CommitRows
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.reading.commit_reading import CommitsRead, commit_records
from kafkalog.views.reading.reading import BatchTables


@dataclass(frozen=True, slots=True)
class GroupsRead:
    """All copies of a partition of `__consumer_offsets` of one cluster."""

    copies: tuple[CommitsRead, ...]

    @property
    def place(self) -> tuple[str | None, int | None]:
        """The cluster, and the number of the partition."""
        first = self.copies[0].segments[0]
        return first.cluster_id, first.partition

    @property
    def size(self) -> int:
        return sum(copy.size for copy in self.copies)


class PartitionGroups(NamedTuple):
    """Rows of `commits_that_count`, None without any commit, and the records that LatestRecords
    keeps, with input_path."""

    commits: pa.Table | None
    records: list[GroupRecord]


def read_groups(
    read: GroupsRead,
    options: ReadOptions,
    at_ms: int | None,
    tables_of: Callable[[CommitsRead], BatchTables | None] = lambda copy: None,
) -> PartitionGroups:
    """Return the groups of one partition, now or at a past time. `tables_of` says what goes along
    the read of a copy. Raises what reading raises."""
    in_effect, latest = CommitsInEffect(at_ms), LatestRecords(at_ms)
    for copy in read.copies:
        last = LastCommits(at_ms)
        for batch in read_group_records(
            copy, options, COMMIT_COLUMNS, latest.add, last, tables_of(copy)
        ):
            in_effect.add(batch)
    kept = in_effect.rows()
    return PartitionGroups(None if kept is None else commits_that_count(kept), latest.records())


def read_group_records(
    copy: CommitsRead,
    options: ReadOptions,
    columns: tuple[str, ...],
    take: Callable[[GroupRecord], None],
    last: LastCommits | None = None,
    tables: BatchTables | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a copy in view `offset_commits`, as `CommitRows` does; `take` gets those of
    view `group_metadata` one by one, in the order of their offsets; `tables` go along. Raises what
    reading raises."""
    commits = CommitRows(copy.segments[0].high_watermark, copy.constants, columns, last)
    for records in commit_records(copy, options, tables):
        for row in group_rows(records):
            take({**copy.constants, **row})
        yield from commits.batches([records])
    yield from commits.last_batches()
