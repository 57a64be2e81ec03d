"""Tasks of Spark that each have a group of work of their own, and report what they have done.

1. Item number n of the list is the work of task number n, and of no other.
2. A task can run twice, at the same time too: what it writes has names of its own, and counts only
   when the driver has seen its report.
3. Results come back in the order of the items.
4. A report arrives once for each task that has ended well. It is for progress and totals; what must
   be exact is in the results.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kafkalog.columns.arrays import integers, of_values
from kafkalog.lake.written_file import OnReport, Report, WrittenFile, no_report
from kafkalog.spark.tables import local_rows

# The columns of what tasks return by `pickled`.
RESULT = "result binary"


class _Reports(AccumulatorParam[list[Report]]):
    """Adds up reports as they come to the driver, and tells each."""

    def __init__(self, on_report: OnReport = no_report) -> None:
        self._on_report = on_report

    def __reduce__(self) -> tuple[type[_Reports], tuple[()]]:
        """As it goes to tasks."""
        return _Reports, ()

    def zero(self, value: list[Report]) -> list[Report]:
        return []

    def addInPlace(  # noqa: N802
        self, value1: list[Report], value2: list[Report]
    ) -> list[Report]:
        for report in value2:
            self._on_report(report)
        return value1 + value2


@contextmanager
def reported_files(
    spark: SparkSession,
    discard: Callable[[Iterable[WrittenFile]], None],
    on_report: OnReport = no_report,
) -> Iterator[OnReport]:
    """Yield what a task calls at its end. If the block fails, the files of these tasks are
    discarded; those of killed processes stay, and no commit names them."""
    reports = spark.sparkContext.accumulator([], _Reports(on_report))
    try:
        yield lambda report: reports.add([report])
    except BaseException:
        discard(file for report in reports.value for file in report.files)
        raise


def in_tasks(
    spark: SparkSession,
    groups: Sequence[Any],
    run: Callable[[Any], Iterator[pa.RecordBatch]],
    schema: StructType | str = RESULT,
) -> DataFrame:
    """Return what `run` gives of each group, in a task of its own, which unpickles no other."""
    if not groups:
        return local_rows(spark, [], schema)
    packed = [pickle.dumps(group) for group in groups]

    def run_groups(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in integers(batch.column(0)).tolist():
                yield from run(pickle.loads(packed[number]))

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(run_groups, schema)


def in_places(rows: DataFrame, places: int, column: str) -> DataFrame:
    """Return the rows in as many partitions as there are places, each in that of its place, which a
    column names. Spark 4.0 puts some places into one partition."""
    if hasattr(DataFrame, "repartitionById"):
        return rows.repartitionById(places, column)
    return rows.repartition(places, column)


def pickled(result: object) -> pa.RecordBatch:
    """Return a row with what a task returns."""
    return pa.RecordBatch.from_arrays(
        [of_values([pickle.dumps(result)], pa.binary())], names=["result"]
    )


def results(rows: DataFrame) -> list[Any]:
    """Run tasks, and return what they returned by `pickled`, in order."""
    return [pickle.loads(row.result) for row in rows.collect()]
