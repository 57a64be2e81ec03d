"""Views of logs that a job has listed already: where these are few, the job plans itself which task
reads what, without Spark's processes for planning, which would list them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce as combined

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafkalog.spark.lake.task_groups import in_tasks
from kafkalog.spark.source.batch_reader import KafkaLogReader, ReadGroup
from kafkalog.spark.source.projection import view_schema
from kafkalog.spark.tables import kept_rows, local_rows, spark_schema
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import Read, planned_groups

Batches = Iterator[pa.RecordBatch]
# What a task makes of its rows of a view.
Reduction = Callable[[Batches], Batches]

# Each task gets the plan of all others too; Spark's own planning gives it its own alone.
_FEW_SEGMENTS = 10_000


@dataclass(frozen=True, slots=True)
class PlannedViews:
    """Reads views of the `logs` that are found under `log_dirs`; `options` are the source's, for
    all views. All topics are read, internal ones included, or the one that option `subscribe`
    names, which the logs may lack; ordinary topics where that is None."""

    spark: SparkSession
    log_dirs: Sequence[str]
    logs: Sequence[PartitionLog]
    options: Mapping[str, str | int]

    def view(self, name: str, **options: str | int | None) -> DataFrame:
        """Return the rows of a view."""
        return self._read(name, options, None)

    def reduced(
        self, name: str, reduce: Reduction, schema: StructType, **options: str | int | None
    ) -> DataFrame:
        """Return what `reduce` makes of the rows of a view, in the tasks that read them."""
        return self._read(name, options, (reduce, schema))

    def _read(
        self,
        name: str,
        options: Mapping[str, str | int | None],
        reduction: tuple[Reduction, StructType] | None,
    ) -> DataFrame:
        wanted = {"view": name, "subscribe": "*", **self.options, **options}
        if wanted["subscribe"] not in ("*", None, *(log.topic for log in self.logs)):
            return local_rows(self.spark, [], reduction[1] if reduction else spark_schema(name))
        given = {key: str(value) for key, value in wanted.items() if value is not None}
        if sum(len(log.segments) for log in self.logs) > _FEW_SEGMENTS:
            rows = self.spark.read.format("kafkalog").options(**given).load(list(self.log_dirs))
            return rows if reduction is None else rows.mapInArrow(*reduction)
        parsed = read_options({"paths": json.dumps(list(self.log_dirs)), **given})
        schema = view_schema(parsed)
        reader = KafkaLogReader(parsed, tuple(schema.names))
        reduce, schema = reduction or (iter, schema)

        def read(reads: Sequence[Read]) -> Batches:
            return reduce(reader.read(ReadGroup(reads)))

        return in_tasks(self.spark, planned_groups(parsed, list(self.logs)), read, schema)


def kept_together(frames: Mapping[str, DataFrame]) -> list[DataFrame]:
    """Return the rows of several frames, as `kept_rows` does: one job of Spark makes them, side by
    side."""
    rows = (
        frame.select(*(_column(name, other, frames[other].schema) for other in frames))
        for name, frame in frames.items()
    )
    return separated(kept_rows(combined(DataFrame.union, rows)), frames)


def separated(rows: DataFrame, tables: Iterable[str]) -> list[DataFrame]:
    """Return the rows of each table, from rows with a column for each of them, all null but one."""
    return [rows.where(F.col(table).isNotNull()).select(f"{table}.*") for table in tables]


def _column(own: str, name: str, schema: StructType) -> Column:
    value = F.struct("*") if name == own else F.lit(None).cast(schema)
    return value.alias(name)
