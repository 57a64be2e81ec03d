"""The views that a report asks for, read by Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from kafkalog.spark.jobs.planned_views import PlannedViews


@dataclass(frozen=True, slots=True)
class SparkViews:
    """Reads views of log directories (`kafkalog.report.reading.views.Views`)."""

    planned: PlannedViews

    def table(
        self,
        view: str,
        columns: Sequence[str],
        reduce: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        **options: str | None,
    ) -> pa.Table:
        """Return what `reduce` makes of the rows of each task."""
        given = {"columns": ",".join(columns), **options}
        made = self.planned.reduced(view, reduce, from_arrow_schema(schema), **given)
        return made.toArrow().cast(schema)
