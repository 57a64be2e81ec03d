"""Views that Spark's tasks read, of logs that a job has listed already: where these are few, the
job plans itself which task reads what, without Spark's processes for planning, which would list
them again."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kafkalog.columns.arrays import fixed_width, of_values
from kafkalog.spark.delta_commit import session_setting
from kafkalog.spark.kept_rows import KeptRows, kept_rows, kept_together
from kafkalog.spark.lake.task_groups import RESULT, in_places, in_tasks, pickled, results
from kafkalog.spark.session import parallelism
from kafkalog.spark.source.batch_reader import KafkaLogReader, ReadGroup
from kafkalog.spark.source.projection import view_schema
from kafkalog.spark.tables import local_rows
from kafkalog.storage.files.unreadable_input import add_notes, carried_notes
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Options, Step, is_of_absent_topic
from kafkalog.views.options.options import view_option_texts, view_options
from kafkalog.views.planning.planning import Read, planned_groups

# The number of the place that something is for, and what it is, pickled.
_PASSED_ON = "place int, data binary"
# What the JVM gives a task at once of what others passed on; its own limit is 64 MiB.
_SMALL_BATCHES = "spark.sql.execution.arrow.maxBytesPerBatch", str(4 * 1024 * 1024)
# Each task gets the plan of all others too; Spark's own planning gives it its own alone.
_FEW_SEGMENTS = 10_000

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class SparkViews:
    """Reads views by Spark's tasks (`kafkalog.views.engine.Views`). `options` are the source's, for
    all views. All topics are read, internal ones included, or the one that option `subscribe`
    names; ordinary topics where that is None."""

    spark: SparkSession
    log_dirs: Sequence[str]
    logs: Sequence[PartitionLog]
    options: Options = field(default_factory=dict)

    def over(self, log_dirs: Sequence[str], logs: Sequence[PartitionLog]) -> SparkViews:
        """Return views of other logs, in the same session."""
        return replace(self, log_dirs=log_dirs, logs=logs)

    def rows(self, *asked: AskedView) -> list[KeptRows]:
        """Return the rows of each view: few are in the driver, many in Spark's memory."""
        frames = {f"{number}_{each.name}": self.frame(each) for number, each in enumerate(asked)}
        if len(frames) == 1:
            return [kept_rows(frame) for frame in frames.values()]
        return kept_together(frames)

    def tasks(
        self, run: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Iterator[_Result]:
        """Yield what `run` gives of each item, in the order of the items. What tasks on other
        machines could not read is noted as if they had read it here."""

        def run_noted(item: _Item) -> _Batches:
            with carried_notes() as notes:
                found = [*run(item)]
            yield pickled((found, notes))

        if items:
            for found, notes in results(in_tasks(self.spark, items, run_noted)):
                add_notes(notes)
                yield from found

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        return parallelism(self.spark)

    def shuffled(
        self, read: Callable[[_Item], Iterable[tuple[int, Any]]], items: Sequence[_Item], step: Step
    ) -> Iterator[Any]:
        """Yield what the step makes."""

        def made(batches: _Batches) -> _Batches:
            for place, passed in _received(batches):
                yield from map(pickled, step.make(place, passed))

        with session_setting(self.spark, *_SMALL_BATCHES):
            passed_on = self._passed_on(read, items, step.places)
            found = results(passed_on.mapInArrow(made, RESULT))
        yield from found

    def shuffled_rows(
        self,
        read: Callable[[_Item], Iterable[tuple[int, Any]]],
        items: Sequence[_Item],
        schema: pa.Schema,
        step: Step,
    ) -> KeptRows:
        """Return the same as rows: few are in the driver, many in Spark's memory."""

        def made(batches: _Batches) -> _Batches:
            for place, passed in _received(batches):
                yield from step.make(place, passed)

        with session_setting(self.spark, *_SMALL_BATCHES):
            passed_on = self._passed_on(read, items, step.places)
            return kept_rows(passed_on.mapInArrow(made, from_arrow_schema(schema)))

    def _passed_on(
        self,
        read: Callable[[_Item], Iterable[tuple[int, Any]]],
        items: Sequence[_Item],
        places: int,
    ) -> DataFrame:
        """Return what is passed on, each in the partition of its place."""

        def pass_on(item: _Item) -> _Batches:
            yield from map(_passed, read(item))

        return in_places(in_tasks(self.spark, items, pass_on, _PASSED_ON), places, "place")

    def frame(self, asked: AskedView) -> DataFrame:
        """Return the rows of a view as a DataFrame, which reads each time that it is used."""
        columns = None if asked.columns is None else ",".join(asked.columns)
        options = {**self.options, "columns": columns, **asked.options}
        parsed = view_options(self.log_dirs, asked.name, **options)
        schema = view_schema(parsed)
        result = schema if asked.schema is None else from_arrow_schema(asked.schema)
        if is_of_absent_topic(options, self.logs):
            return local_rows(self.spark, [], result)
        logs = self.logs if asked.logs is None else asked.logs
        # What a task gets has no logs.
        reduced = replace(asked, logs=None).reduced
        is_large = sum(len(log.segments) for log in logs) > _FEW_SEGMENTS
        if is_large and asked.logs is None:
            reader = self.spark.read.format("kafkalog")
            rows = reader.options(**view_option_texts(asked.name, options)).load(
                list(self.log_dirs)
            )
            return rows if asked.schema is None else rows.mapInArrow(reduced, result)
        tasks = KafkaLogReader(parsed, tuple(schema.names))

        def read(reads: Sequence[Read]) -> Iterator[pa.RecordBatch]:
            return reduced(tasks.read(ReadGroup(reads)))

        groups = planned_groups(parsed, list(logs), beside=self.logs)
        return in_tasks(self.spark, groups, read, result)


def _passed(each: tuple[int, Any]) -> pa.RecordBatch:
    """Return what is passed on to a place as a row of _PASSED_ON."""
    place, passed = each
    columns = (
        fixed_width(np.array([place]), pa.int32()),
        of_values([pickle.dumps(passed)], pa.binary()),
    )
    return pa.RecordBatch.from_arrays(list(columns), names=["place", "data"])


def _received(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Any]]]:
    """Yield the places of a partition, and what was passed on to each."""
    rows = (
        (place.as_py(), data.as_buffer())
        for batch in batches
        for place, data in zip(*batch.columns, strict=True)
    )
    for place, own in groupby(rows, itemgetter(0)):
        yield place, (pickle.loads(data) for _, data in own)
