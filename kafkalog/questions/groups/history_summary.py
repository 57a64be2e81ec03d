"""What tasks that make a history of lag return beside it: what would have to be read again
otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.table_rows import table_batch
from kafkalog.coordination.groups.group_generations import GroupGenerations
from kafkalog.coordination.groups.group_statuses import PARTITION_COLUMNS
from kafkalog.coordination.groups.lag_question import ChosenNames, FoundNames, all_names
from kafkalog.inspection.groups.commit_reach import LogReach
from kafkalog.inspection.lag.chosen_rows import found_names
from kafkalog.inspection.lag.lag_history import END, TABLE

GENERATIONS = "group_generations"
# Generations that all tasks return together, of a few hundred bytes each.
_FEW_ROWS = 200_000


class ReadSummary(NamedTuple):
    """What a task knows that has read partitions of `__consumer_offsets`: how far back the commits
    reach, the generations of groups there, None where these are many, and when the first and the
    last commit took effect, None without any."""

    reaches: tuple[LogReach, ...]
    generations: pa.RecordBatch | None
    span: tuple[int, int] | None = None

    @classmethod
    def of(
        cls,
        reaches: Iterable[LogReach],
        groups: Iterable[GroupGenerations],
        tasks: int,
        span: tuple[int, int] | None = None,
    ) -> ReadSummary:
        """Return the summary of one of so many tasks."""
        limit = _FEW_ROWS // tasks
        rows = list(islice(chain.from_iterable(each.rows() for each in groups), limit + 1))
        is_few = len(rows) <= limit
        return cls(tuple(reaches), generation_batch(rows) if is_few else None, span)


class HistorySummary(NamedTuple):
    """What is known of rows of table `lag_history`: which of the given names they have, those at
    the end with the columns that statuses of groups are made of, and what the tasks know that have
    read the commits."""

    names: FoundNames = FoundNames()
    ends: pa.Table | None = None
    reads: Sequence[ReadSummary] = ()

    @property
    def reaches(self) -> list[LogReach]:
        """How far back the commits reach."""
        return [reach for read in self.reads for reach in read.reaches]

    @property
    def span(self) -> tuple[int, int] | None:
        """When the first and the last commit took effect, of all groups; None without any."""
        spans = [read.span for read in self.reads if read.span is not None]
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None

    @property
    def generations(self) -> pa.Table | None:
        """The rows of table `group_generations`, None where these are many."""
        found = [read.generations for read in self.reads if read.generations is not None]
        if len(found) < len(self.reads):
            return None
        return pa.Table.from_batches(found, arrow_schema(GENERATIONS))


class RowsSeen:
    """Takes the rows of table `lag_history` that a task makes, and gives their summary."""

    def __init__(self, chosen: ChosenNames) -> None:
        self._chosen = chosen
        self._names = FoundNames()
        self._ends: list[pa.RecordBatch] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows."""
        self._names = all_names([self._names, found_names(rows, self._chosen)])
        is_end = pc.equal(rows.column("event"), END)
        self._ends.append(rows.select(PARTITION_COLUMNS).filter(is_end))

    def summary(self, reads: Sequence[ReadSummary]) -> HistorySummary:
        """Return the summary, with what came from other tasks."""
        ends = pa.Table.from_batches(self._ends, arrow_schema(TABLE, PARTITION_COLUMNS))
        return HistorySummary(self._names, ends, reads)


def summed(summaries: Sequence[HistorySummary]) -> HistorySummary:
    """Return the summary of the rows of several tasks."""
    ends = [each.ends for each in summaries if each.ends is not None]
    return HistorySummary(
        all_names(each.names for each in summaries),
        pa.concat_tables(ends) if ends else None,
        [read for each in summaries for read in each.reads],
    )


def generation_batch(rows: Iterable[Mapping[str, Any]]) -> pa.RecordBatch:
    """Return rows of table `group_generations`."""
    return table_batch(GENERATIONS, [*rows], {})
