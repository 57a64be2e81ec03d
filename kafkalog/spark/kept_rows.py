"""Rows that several steps of a job need, made once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from functools import reduce as combined
from typing import Any, cast

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafkalog.spark.tables import arrow_rows
from kafkalog.views.engine import RowsInMemory

# So many rows are kept in the driver.
_FEW_ROWS = 20_000


class KeptRows:
    """Rows that are in the driver, as `few`, or in Spark's memory: then `few` is None."""

    def __init__(self, spark: SparkSession, schema: StructType, rows: pa.Table | DataFrame) -> None:
        self.schema = schema
        self.few = rows if isinstance(rows, pa.Table) else None
        self._spark, self._rows = spark, rows

    @classmethod
    def of(
        cls, spark: SparkSession, rows: Iterable[Mapping[str, Any]], schema: StructType
    ) -> KeptRows:
        """Return rows of plain values by column."""
        return cls(spark, schema, arrow_rows(rows, schema))

    @property
    def is_empty(self) -> bool:
        """Whether there is no row."""
        return self.frame.isEmpty() if self.few is None else not len(self.few)

    @property
    def table(self) -> pa.Table:
        """All rows, in the driver."""
        return self.frame.toArrow() if self.few is None else self.few

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as a DataFrame. Spark needs a moment to take those that are in the driver."""
        if isinstance(self._rows, DataFrame):
            return self._rows
        return self._spark.createDataFrame(self._rows, self.schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each row's values by column."""
        if self.few is None:
            yield from (row.asDict(recursive=True) for row in self.frame.toLocalIterator())
        else:
            yield from RowsInMemory(self.few)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the values of a column, all in the driver."""
        few = self.frame.select(name).toArrow() if self.few is None else self.few
        return few.column(name)

    def of_table(self, name: str) -> KeptRows:
        """Return the structs of a column that are not null, as rows."""
        schema = cast(StructType, self.schema[name].dataType)
        if self.few is None:
            rows = self.frame.where(F.col(name).isNotNull()).select(f"{name}.*")
            return KeptRows(self._spark, schema, rows)
        return KeptRows(self._spark, schema, RowsInMemory(self.few).of_table(name).table)

    def and_more(self, batches: Sequence[pa.RecordBatch], others: Sequence[KeptRows]) -> KeptRows:
        """Return these rows, and more of the same columns."""
        if not (batches or others):
            return self
        arrow = to_arrow_schema(self.schema)
        more = [pa.Table.from_batches(batches).cast(arrow)] if batches else []
        if self.few is not None and all(each.few is not None for each in others):
            few = [each.few.cast(arrow) for each in (self, *others) if each.few is not None]
            return KeptRows(self._spark, self.schema, pa.concat_tables([*few, *more]))
        frames = [self.frame, *(each.frame for each in others)]
        frames += [self._spark.createDataFrame(each, self.schema) for each in more]
        return KeptRows(self._spark, self.schema, combined(DataFrame.union, frames))


def kept_rows(frame: DataFrame) -> KeptRows:
    """Return the rows of a frame, made once. Few are then in the driver, where steps need no job of
    Spark; more are persisted."""
    persisted = frame.persist(StorageLevel.MEMORY_AND_DISK)
    rows = persisted.limit(_FEW_ROWS + 1).toArrow()
    if rows.num_rows > _FEW_ROWS:
        return KeptRows(frame.sparkSession, frame.schema, persisted)
    persisted.unpersist()
    return KeptRows(frame.sparkSession, frame.schema, rows)


def kept_together(
    frames: Mapping[str, DataFrame], beside: DataFrame | None = None
) -> dict[str, KeptRows]:
    """Return the rows of several frames by their names: one job of Spark makes them, side by side.
    A row of the frame `beside` is one of another frame, in the column with its name."""
    sides = [(frame, {name: F.struct("*")}) for name, frame in frames.items()]
    schemas = {name: frame.schema for name, frame in frames.items()}
    if beside is not None:
        sides.append((beside, {name: F.col(name) for name in beside.columns}))
        schemas |= {field.name: cast(StructType, field.dataType) for field in beside.schema}
    if not sides:
        return {}
    rows = (
        frame.select(
            *(
                values.get(name, F.lit(None).cast(schema)).alias(name)
                for name, schema in schemas.items()
            )
        )
        for frame, values in sides
    )
    together = kept_rows(combined(DataFrame.union, rows))
    return {name: together.of_table(name) for name in schemas}
