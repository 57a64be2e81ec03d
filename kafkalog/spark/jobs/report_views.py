"""The views that a report asks for, read by Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kafkalog.spark.topic_views import every_topic


@dataclass(frozen=True, slots=True)
class SparkViews:
    """Reads views of log directories (`kafkalog.report.reading.views.Views`)."""

    spark: SparkSession
    log_dirs: Sequence[str]
    mode: str

    def table(
        self,
        view: str,
        columns: Sequence[str],
        reduce: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        **options: str | None,
    ) -> pa.Table:
        """Return what `reduce` makes of the rows of each task."""
        reader = every_topic(self.spark, view, self.mode).options(columns=",".join(columns))
        if "subscribe" in options and options["subscribe"] is None:
            reader = self.spark.read.format("kafkalog").option("view", view)
            reader = reader.options(mode=self.mode, columns=",".join(columns))
        given = {name: value for name, value in options.items() if value is not None}
        frame = reader.options(**given).load(list(self.log_dirs)).select(*columns)
        made = frame.mapInArrow(reduce, from_arrow_schema(schema))
        return made.toArrow().cast(schema)
