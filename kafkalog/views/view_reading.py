"""The rows of any view, of what a plan gives one task: called in Spark's tasks, and by the command
line, which has no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from kafkalog.storage.reading.read_plan import SegmentRead
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.planning.directory_reads import DirectoryRead, read_of_directory
from kafkalog.views.reading.commit_reading import CommitsRead, read_commits
from kafkalog.views.reading.partition_reads import PartitionRead, ReplicaSetRead
from kafkalog.views.reading.reading import read_segment

if TYPE_CHECKING:  # tasks do not plan
    from kafkalog.views.planning.planning import Read


def load_readers(reads: Iterable[Read]) -> None:
    """Import what `read_view` needs for these reads, so that forks have it."""
    if any(isinstance(read, PartitionRead | ReplicaSetRead) for read in reads):
        import kafkalog.views.reading.partition_views  # noqa: F401


def read_view(
    reads: Sequence[Read], options: ReadOptions, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these reads, one read after the other, in the requested columns of the
    view."""
    for kind, some in groupby(reads, type):
        if kind is PartitionRead:
            from kafkalog.views.reading.partition_views import read_partitions

            yield from read_partitions(cast("Iterator[PartitionRead]", some), options, columns)
            continue
        for read in some:
            if isinstance(read, SegmentRead):
                yield from read_segment(read, options, columns)
            elif isinstance(read, CommitsRead):
                yield from read_commits(read, options, columns)
            elif isinstance(read, DirectoryRead):
                yield from read_of_directory(read, columns)
            elif isinstance(read, ReplicaSetRead):
                from kafkalog.views.reading.partition_views import read_replica_set

                yield from read_replica_set(read, options, columns)
