"""What each task reads of `__consumer_offsets` to know all about the groups there."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain

from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.planning.planning import planned_groups
from kafkalog.views.reading.commit_reading import CommitsRead
from kafkalog.views.reading.group_reading import GroupsRead


def group_reads(options: ReadOptions, found: list[PartitionLog]) -> list[GroupsRead]:
    """Return a read for each partition of `__consumer_offsets`, of all its copies. `options` are of
    view `offset_commits`; `found` are the logs under the paths."""
    copies: dict[tuple[str | None, int | None], list[CommitsRead]] = defaultdict(list)
    for read in chain.from_iterable(planned_groups(options, found)):
        if isinstance(read, CommitsRead):
            first = read.segments[0]
            copies[first.cluster_id, first.partition].append(read)
    return [GroupsRead(tuple(reads)) for reads in copies.values()]
