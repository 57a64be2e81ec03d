"""Views that Spark's tasks read, of logs that a job has listed already: where these are few, the
job plans itself which task reads what, without Spark's processes for planning, which would list
them again."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType

from kafkalog.columns.arrays import fixed_width, of_values
from kafkalog.spark.delta_commit import session_setting
from kafkalog.spark.kept_rows import KeptRows, kept_rows, kept_together
from kafkalog.spark.lake.task_groups import RESULT, in_places, in_tasks, pickled, results
from kafkalog.spark.session import parallelism
from kafkalog.spark.source.batch_reader import KafkaLogReader, ReadGroup, read_in_task
from kafkalog.spark.source.projection import of_columns, whole_schema
from kafkalog.spark.tables import local_rows
from kafkalog.storage.files.unreadable_input import add_notes, carried_notes
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Options, Step, is_of_absent_topic, planned_views
from kafkalog.views.options.options import View, view_option_texts
from kafkalog.views.planning.planning import Read
from kafkalog.views.reading.shared_walk import SharedRead, WantedView
from kafkalog.views.shared_views import FoldedViews, JoinedParts, PartRows

# Of large segments, for each core: a task takes a moment to begin.
_PARTS_EACH = 2
# What tasks find in parts of segments, beside the columns of views.
_PARTS, _PICKLED = "parts", StructType([StructField("result", BinaryType())])
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
        """Return the rows of each view: few are in the driver, many in Spark's memory. Views that
        share walks divide large segments. Rules: docs/report.md F1323, F1330."""
        names = [f"{number}_{each.name}" for number, each in enumerate(asked)]
        is_many = sum(len(log.segments) for log in self.logs) > _FEW_SEGMENTS
        by_source = {n for n, each in enumerate(asked) if is_many and each.logs is None}
        plan = planned_views(self, asked, self.cores * _PARTS_EACH, by_source)
        frames = {
            name: self._by_source(asked[number])
            if number in by_source
            else self._by_tasks(asked[number], plan.views.wanted[number], plan.alone[number])
            for number, name in enumerate(names)
            if number in by_source or plan.alone[number] or number not in plan.sharing
        }
        if not plan.together and len(frames) == 1:
            return [kept_rows(frame) for frame in frames.values()]
        columns = {number: _columns(asked[number]) for number in plan.sharing}
        walks = _Walks(self.spark, names, columns, plan.views)
        found = kept_together(frames, walks.frame(plan.together))
        parts: list[PartRows] = [pickle.loads(row["result"]) for row in found.get(_PARTS, ())]
        joined = JoinedParts(plan.views)
        made: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        # Spark gives the rows of tasks in any order.
        for part in sorted(parts, key=attrgetter("place")):
            for number, batch in joined.add(part):
                made[names[number]].append(batch)
        again = kept_together({}, walks.frame(joined.again))
        return [
            found[name].and_more(made[name], [again[name]] if name in again else [])
            for name in names
        ]

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

    def _by_source(self, asked: AskedView) -> DataFrame:
        """Return the rows of a view, which Spark's own planning divides among tasks."""
        if is_of_absent_topic(asked, self.logs):
            return local_rows(self.spark, [], _columns(asked))
        names = None if asked.columns is None else ",".join(asked.columns)
        texts = view_option_texts(asked.name, {**self.options, "columns": names, **asked.options})
        rows = self.spark.read.format("kafkalog").options(**texts).load(list(self.log_dirs))
        return rows if asked.schema is None else rows.mapInArrow(asked.reduced, _columns(asked))

    def _by_tasks(
        self, asked: AskedView, wanted: WantedView, groups: Sequence[Sequence[Read]]
    ) -> DataFrame:
        """Return the rows of a view that does not share walks, planned here."""
        tasks = KafkaLogReader(*wanted)
        # What a task gets has no logs.
        reduced = replace(asked, logs=None).reduced

        def read(reads: Sequence[Read]) -> Iterator[pa.RecordBatch]:
            return reduced(tasks.read(ReadGroup(reads)))

        return in_tasks(self.spark, groups, read, _columns(asked))


@dataclass(frozen=True, slots=True)
class _Walks:
    """The walks that views share, by the numbers of views: the name of each, and its columns."""

    spark: SparkSession
    names: Sequence[str]
    columns: Mapping[int, StructType]
    views: FoldedViews

    def frame(self, groups: Sequence[Sequence[SharedRead]]) -> DataFrame | None:
        """Return the rows of all views, each in the column of its view, and what tasks find in
        parts of segments, pickled, in column _PARTS; None without a walk."""
        if not groups:
            return None
        names, views = self.names, self.views
        schemas = {names[number]: own for number, own in self.columns.items()}
        schema = StructType(
            [StructField(name, each) for name, each in {**schemas, _PARTS: _PICKLED}.items()]
        )
        columns, options = to_arrow_schema(schema), views.wanted[min(self.columns)].options

        def read(reads: Sequence[SharedRead]) -> Iterator[pa.RecordBatch]:
            for found in read_in_task(options, reads, views.rows(reads)):
                own, batch = (
                    (_PARTS, pickled(found))
                    if isinstance(found, PartRows)
                    else (names[found[0]], found[1])
                )
                arrays = [
                    batch.to_struct_array() if each.name == own else pa.nulls(len(batch), each.type)
                    for each in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=columns.names)

        return in_tasks(self.spark, groups, read, schema)


def _columns(asked: AskedView) -> StructType:
    """Return the columns of the rows of a view."""
    if asked.schema is not None:
        return from_arrow_schema(asked.schema)
    return of_columns(whole_schema(View(asked.name)), asked.read_columns)


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
