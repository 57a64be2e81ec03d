"""View `offset_commits`: a task has a partition of `__consumer_offsets` to itself, for what became
of a commit shows further on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from kafkalog.inspection.groups.commit_columns import LastCommits
from kafkalog.inspection.groups.latest_commits import LatestCommits
from kafkalog.inspection.groups.offset_commits import COMMIT_RECORD_COLUMNS, CommitRows
from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.reading.reading import BatchTables, read_segment

_ROWS_PER_BATCH = 65_536


@dataclass(frozen=True, slots=True)
class CommitsRead:
    """All segments of a partition, in their order."""

    segments: tuple[SegmentRead, ...]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def constants(self) -> dict[str, str | int | None]:
        """The columns that are the same in all rows of the partition."""
        first = self.segments[0]
        return {
            "cluster_id": first.cluster_id,
            "input_path": first.input_path,
            "internal_partition": first.partition,
        }


def commits_reads(reads: Iterable[SegmentRead]) -> list[CommitsRead]:
    """Return the segments of each log together."""
    by_log = groupby(reads, key=lambda read: (read.input_path, read.broker_id, read.partition))
    return [CommitsRead(tuple(segments)) for _, segments in by_log]


def read_commits(
    read: CommitsRead, options: ReadOptions, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one partition in view `offset_commits`; with option `latest` those that
    decide which commits count."""
    if not options.latest:
        yield from _rows(all_rows(read, columns), read, options)
        return
    # Other views of other topics do without pyarrow.compute, which this module imports.
    from kafkalog.inspection.groups.commits_in_effect import COMMIT_COLUMNS, CommitsInEffect

    # Nothing but rows that decide leaves the task: of millions of commits a few thousand.
    needed = tuple(dict.fromkeys([*columns, *COMMIT_COLUMNS]))
    at_ms = options.as_of_ms or None
    commits = CommitsInEffect(at_ms)
    rows_that_count = counting_rows(read, needed, at_ms)
    for batch in _rows(rows_that_count, read, options):
        commits.add(batch)
    rows = commits.rows_of_view()
    if rows is not None:
        yield from rows.select(columns).to_batches(max_chunksize=_ROWS_PER_BATCH)


def all_rows(read: CommitsRead, columns: tuple[str, ...]) -> CommitRows:
    """Return what makes the rows of all commits of a partition."""
    return CommitRows(read.segments[0].high_watermark, read.constants, columns)


def counting_rows(
    read: CommitsRead, columns: tuple[str, ...], at_ms: int | None
) -> CommitRows | LatestCommits:
    """Return what makes the rows of the commits of a partition that count at a time, None for now,
    and of some others."""
    high_watermark = read.segments[0].high_watermark
    if at_ms is None:
        return LatestCommits(high_watermark, read.constants, columns)
    return CommitRows(high_watermark, read.constants, columns, LastCommits(at_ms))


def _rows(
    rows: CommitRows | LatestCommits, read: CommitsRead, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    yield from rows.batches(commit_records(read, options))
    yield from rows.last_batches()


def commit_records(
    read: CommitsRead, options: ReadOptions, tables: BatchTables | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records of one partition with COMMIT_RECORD_COLUMNS, control records included, in
    the order of their offsets; `tables` go along."""
    for segment in read.segments:
        batches = read_segment(segment, options, COMMIT_RECORD_COLUMNS, tables=tables)
        yield from _in_order(batches, segment)


def _in_order(batches: Iterator[pa.RecordBatch], segment: SegmentRead) -> Iterator[pa.RecordBatch]:
    """Yield what was filled from other replicas comes after the segment's own records."""
    if segment.filling is None:
        yield from batches
        return
    found = list(batches)
    if found:
        yield from pa.Table.from_batches(found).sort_by("offset").to_batches()
