"""Rows of the source's views, read by processes of this machine instead of Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from kafkalog.command_line.parallel import in_order
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.options import ReadOptions
from kafkalog.views.planning.planning import Read, planned_groups
from kafkalog.views.view_reading import read_view

_Result = TypeVar("_Result")
# What the process that reads a task makes of its batches.
Reduction = Callable[[Iterator[pa.RecordBatch]], Iterable[_Result]]


def reduced_view(
    options: ReadOptions,
    columns: tuple[str, ...],
    reduce: Reduction[_Result],
    *,
    processes: int,
    found: list[PartitionLog] | None = None,
    on_done: Callable[[int], None] = lambda size: None,
) -> Iterator[_Result]:
    """Yield what `reduce` makes of the rows of each task, in the tasks' order.

    `found` has the logs under the paths if they have been listed; `on_done` is called with the
    number of bytes that a task has read.
    """
    groups = planned_groups(options, found)

    def read(reads: Sequence[Read]) -> Iterable[_Result]:
        return reduce(read_view(reads, options, columns))

    def done(reads: Sequence[Read]) -> None:
        on_done(sum(each.size for each in reads))

    yield from in_order(read, groups, processes=processes, on_done=done)


def plain_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield the rows as they are, for views with few."""
    for batch in batches:
        yield from batch.to_pylist()
