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
from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, CommitsInEffect
from kafkalog.inspection.groups.group_metadata import group_rows
from kafkalog.inspection.groups.latest_commits import LatestCommits
from kafkalog.inspection.groups.offset_commits import CommitRows
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.reading.commit_reading import CommitsRead, commit_records, counting_rows
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
    """Rows of `CommitsInEffect`, None without any commit, and the records that LatestRecords
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
        rows = counting_rows(copy, COMMIT_COLUMNS, at_ms)
        for batch in read_group_records(
            *(copy, options, rows, latest.add, tables_of(copy)), of_each_key_last=at_ms is None
        ):
            in_effect.add(batch)
    return PartitionGroups(in_effect.rows(), latest.records())


def read_group_records(
    copy: CommitsRead,
    options: ReadOptions,
    commits: CommitRows | LatestCommits,
    take: Callable[[GroupRecord], None],
    tables: BatchTables | None = None,
    *,
    of_each_key_last: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that `commits` makes of a copy; `take` gets those of view `group_metadata` one
    by one, in the order of their offsets, with `of_each_key_last` without those that others read
    together with them replace; `tables` go along. Raises what reading raises."""
    for records in commit_records(copy, options, tables):
        for row in group_rows(records, of_each_key_last=of_each_key_last):
            take({**copy.constants, **row})
        yield from commits.batches([records])
    yield from commits.last_batches()
