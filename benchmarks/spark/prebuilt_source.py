"""A Python source that has its rows in memory: what Spark itself takes for the rows of any Python
source, and so what none can go below.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kafkalog.columns.arrow_types import arrow_schema
from kafkalog.spark.source.projection import table_struct

_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
_BATCH_BYTES = 4 * 2**20  # as kafkalog's own batches
_TASKS = 16


class _Prebuilt(DataSourceReader):
    def __init__(self, records: int, record_size: int) -> None:
        self._records = records
        self._record_size = record_size

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(_TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        left = self._records // _TASKS + (partition.value < self._records % _TASKS)
        batch = _batch(_BATCH_BYTES // self._record_size, self._record_size)
        while left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows


def _batch(rows: int, record_size: int) -> pa.RecordBatch:
    values = {
        "value": [bytes(record_size)] * rows,
        "topic": ["a topic's name"] * rows,
        "partition": [0] * rows,
        "offset": list(range(rows)),
        "timestamp": [0] * rows,
        "timestampType": [0] * rows,
    }
    schema = arrow_schema("records", _COLUMNS)
    arrays = [pa.array(values.get(field.name, [None] * rows), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class PrebuiltSource(DataSource):
    """Options: `records`, and `recordSize`, the bytes of each value."""

    @classmethod
    def name(cls) -> str:
        return "prebuilt"

    def schema(self) -> StructType:
        whole = table_struct("records")
        return StructType([whole[name] for name in _COLUMNS])

    def reader(self, schema: StructType) -> _Prebuilt:
        return _Prebuilt(int(self.options["records"]), int(self.options["recordsize"]))


def prebuilt(spark: SparkSession, records: int, record_size: int) -> DataFrame:
    """So many rows of view `records`."""
    spark.dataSource.register(PrebuiltSource)
    reader = spark.read.format(PrebuiltSource.name()).option("records", records)
    return reader.option("recordSize", record_size).load()


class _OneRow(DataSourceReader):
    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield (1,)


class TinySource(DataSource):
    """A source of one row with one column, as small as a Python source can be."""

    @classmethod
    def name(cls) -> str:
        return "tiny"

    def schema(self) -> str:
        return "number int"

    def reader(self, schema: StructType) -> _OneRow:
        return _OneRow()


def tiny(spark: SparkSession) -> DataFrame:
    """One row of the smallest source."""
    spark.dataSource.register(TinySource)
    return spark.read.format(TinySource.name()).load()
