"""What tasks that make a history of lag return beside it: what the job would have to read again
otherwise. Each part is limited in size, and None where there is more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.columns.table_rows import table_batch
from kafkalog.coordination.groups.group_generations import GroupGenerations
from kafkalog.inspection.groups.commit_reach import LogCompleteness, LogReach
from kafkalog.inspection.lag.chosen_rows import ChosenNames, FoundNames, all_names
from kafkalog.inspection.lag.lag_history import END, TABLE
from kafkalog.spark.kept_rows import KeptRows
from kafkalog.spark.tables import spark_schema

GENERATIONS = "group_generations"
# What a status of a group is made of.
_END_COLUMNS = (
    *("cluster_id", "internal_partition", "group_id", "topic", "partition", "event", "status"),
    *("burrow_status", "reason", "readable_records", "next_timestamp_ms", "commit_timestamp_ms"),
)
# Rows that all tasks return together, of a few hundred bytes each.
_FEW_ROWS = 200_000


class ReadSummary(NamedTuple):
    """What a task knows that has read partitions of `__consumer_offsets`: how far back the commits
    reach, and the generations of groups there."""

    reaches: tuple[LogReach, ...]
    generations: pa.RecordBatch | None

    @classmethod
    def of(
        cls, reaches: Iterable[LogReach], groups: Iterable[GroupGenerations], tasks: int
    ) -> ReadSummary:
        """Return the summary of one of so many tasks."""
        limit = _FEW_ROWS // tasks
        rows = list(islice(chain.from_iterable(each.rows() for each in groups), limit + 1))
        is_few = len(rows) <= limit
        return cls(tuple(reaches), table_batch(GENERATIONS, rows, {}) if is_few else None)


class HistorySummary(NamedTuple):
    """What is known of rows of table `lag_history`: which of the given names they have, those at
    the end, and what the tasks know that have read the commits."""

    names: FoundNames | None = None
    ends: pa.Table | None = None
    reads: Sequence[ReadSummary] | None = None

    @property
    def reaches(self) -> Sequence[LogCompleteness] | None:
        """How far back the commits reach."""
        if self.reads is None:
            return None
        return [reach for read in self.reads for reach in read.reaches]

    def end_rows(self, spark: SparkSession) -> DataFrame | None:
        """Return the rows at the end, with the columns that statuses of groups are made of."""
        return None if self.ends is None else spark.createDataFrame(self.ends).coalesce(1)

    def generations(self, spark: SparkSession) -> KeptRows | None:
        """Return the rows of table `group_generations`."""
        found = [read.generations for read in self.reads or () if read.generations is not None]
        if self.reads is None or len(found) < len(self.reads):
            return None
        rows = pa.Table.from_batches(found, arrow_schema(GENERATIONS))
        return KeptRows(spark, spark_schema(GENERATIONS), rows)


class RowsSeen:
    """Takes the rows of table `lag_history` that one of so many tasks makes, and gives their
    summary."""

    def __init__(self, chosen: ChosenNames, tasks: int) -> None:
        self._chosen, self._limit = chosen, _FEW_ROWS // tasks
        self._names: list[FoundNames] = []
        self._ends: list[pa.RecordBatch] = []
        self._count = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows."""
        self._names = [all_names([*self._names, self._chosen.found_in(rows)])]
        ends = rows.select(_END_COLUMNS).filter(pc.equal(rows.column("event"), END))
        self._count += len(ends)
        if self._count <= self._limit:
            self._ends.append(ends)
        else:
            self._ends.clear()

    def summary(self, reads: Sequence[ReadSummary]) -> HistorySummary:
        """Return the summary, with what came from other tasks."""
        schema = arrow_schema(TABLE, _END_COLUMNS)
        is_few = self._count <= self._limit
        ends = pa.Table.from_batches(self._ends, schema) if is_few else None
        return HistorySummary(all_names(self._names), ends, reads)


def summed(summaries: Sequence[HistorySummary]) -> HistorySummary:
    """Return the summary of the rows of several tasks."""
    ends = [each.ends for each in summaries if each.ends is not None]
    return HistorySummary(
        all_names([each.names for each in summaries if each.names is not None]),
        pa.concat_tables(ends) if ends and len(ends) == len(summaries) else None,
        [read for each in summaries for read in each.reads or ()],
    )
