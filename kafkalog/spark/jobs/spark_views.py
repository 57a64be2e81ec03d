"""Views that Spark's tasks read, of logs that a job has listed already: where these are few, the
job plans itself which task reads what, without Spark's processes for planning, which would list
them again."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kafkalog.columns.arrays import fixed_width, of_values
from kafkalog.spark.kept_rows import KeptRows, kept_rows, kept_together
from kafkalog.spark.lake.task_groups import RESULT, in_places, in_tasks, pickled, results
from kafkalog.spark.session import parallelism
from kafkalog.spark.source.batch_reader import KafkaLogReader, ReadGroup
from kafkalog.spark.source.projection import view_schema
from kafkalog.spark.tables import local_rows
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Options, is_of_absent_topic
from kafkalog.views.local_views import view_option_texts, view_options
from kafkalog.views.planning.planning import Read, planned_groups

# The number of the place that something is for, and what it is, pickled.
_PASSED_ON = "place int, data binary"
# Each task gets the plan of all others too; Spark's own planning gives it its own alone.
_FEW_SEGMENTS = 10_000

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Passed = TypeVar("_Passed")


@dataclass(frozen=True, slots=True)
class SparkViews:
    """Reads views by Spark's tasks (`kafkalog.views.engine.Views`). `options` are the source's, for
    all views. All topics are read, internal ones included, or the one that option `subscribe`
    names; ordinary topics where that is None."""

    spark: SparkSession
    log_dirs: Sequence[str]
    logs: Sequence[PartitionLog]
    options: Options = field(default_factory=dict)

    def rows(self, *asked: AskedView) -> list[KeptRows]:
        """Return the rows of each view: few are in the driver, many in Spark's memory."""
        frames = {f"{number}_{each.name}": self.frame(each) for number, each in enumerate(asked)}
        if len(frames) == 1:
            return [kept_rows(frame) for frame in frames.values()]
        return kept_together(frames)

    def tasks(
        self, run: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Iterator[_Result]:
        """Yield what `run` gives of each item, in the order of the items."""
        if items:
            found = in_tasks(self.spark, items, lambda item: iter([pickled([*run(item)])]))
            yield from chain.from_iterable(results(found))

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        return parallelism(self.spark)

    def shuffled(
        self,
        read: Callable[[_Item], Iterable[tuple[int, _Passed]]],
        items: Sequence[_Item],
        make: Callable[[int, Iterator[_Passed]], Iterable[_Result]],
        places: int,
    ) -> Iterator[_Result]:
        """Yield what `make` gives of each place."""

        def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for place, passed in _received(batches):
                yield from map(pickled, make(place, passed))

        yield from results(self._passed_on(read, items, places).mapInArrow(made, RESULT))

    def shuffled_rows(
        self,
        read: Callable[[_Item], Iterable[tuple[int, _Passed]]],
        items: Sequence[_Item],
        make: Callable[[int, Iterator[_Passed]], Iterator[pa.RecordBatch]],
        places: int,
        schema: pa.Schema,
    ) -> KeptRows:
        """Return the same as rows: few are in the driver, many in Spark's memory."""

        def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for place, passed in _received(batches):
                yield from make(place, passed)

        passed_on = self._passed_on(read, items, places)
        return kept_rows(passed_on.mapInArrow(made, from_arrow_schema(schema)))

    def _passed_on(
        self,
        read: Callable[[_Item], Iterable[tuple[int, _Passed]]],
        items: Sequence[_Item],
        places: int,
    ) -> DataFrame:
        """Return what tasks pass on, each in the partition of its place."""

        def pass_on(item: _Item) -> Iterator[pa.RecordBatch]:
            for place, passed in read(item):
                columns = (
                    fixed_width(np.array([place]), pa.int32()),
                    of_values([pickle.dumps(passed)], pa.binary()),
                )
                yield pa.RecordBatch.from_arrays(list(columns), names=["place", "data"])

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
        reduce = asked.reduce or iter
        logs = self.logs if asked.logs is None else asked.logs
        is_large = sum(len(log.segments) for log in logs) > _FEW_SEGMENTS
        if is_large and asked.logs is None:
            reader = self.spark.read.format("kafkalog")
            rows = reader.options(**view_option_texts(asked.name, options)).load(
                list(self.log_dirs)
            )
            return rows if asked.reduce is None else rows.mapInArrow(reduce, result)
        tasks = KafkaLogReader(parsed, tuple(schema.names))

        def read(reads: Sequence[Read]) -> Iterator[pa.RecordBatch]:
            return reduce(tasks.read(ReadGroup(reads)))

        return in_tasks(self.spark, planned_groups(parsed, list(logs)), read, result)


def _received(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[Any]]]:
    """Yield the places of a partition, and what was passed on to each."""
    rows = (
        (place.as_py(), data.as_buffer())
        for batch in batches
        for place, data in zip(*batch.columns, strict=True)
    )
    for place, own in groupby(rows, itemgetter(0)):
        yield place, (pickle.loads(data) for _, data in own)
