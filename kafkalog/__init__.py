"""Kafka's log files as Spark DataFrames, read in bulk and without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from kafkalog.views.options.call_options import (
        OffsetsGiven,
        OptionValue,
        Paths,
        Timestamps,
        Topics,
    )

__version__ = "0.1.0"


# Spark warns of a source that it found by itself and that is registered, each time.
_registered: WeakSet[SparkSession] = WeakSet()


def _register_once(spark: SparkSession) -> None:
    if spark not in _registered:
        register(spark)
        _registered.add(spark)


def register(spark: SparkSession) -> None:
    """Make `format("kafkalog")` and `format("zookeeper")` known to a session that did not find them
    by itself. On one machine the Python of this process plans and reads, unless PYSPARK_PYTHON
    names another."""
    from kafkalog.spark.source.data_source import KafkaLogDataSource
    from kafkalog.spark.source.zookeeper_source import ZookeeperDataSource
    from kafkalog.spark.worker_python import use_this_python

    use_this_python(spark)
    spark.dataSource.register(KafkaLogDataSource)
    spark.dataSource.register(ZookeeperDataSource)


def read(
    spark: SparkSession,
    path: Paths,
    *,
    columns: str | Sequence[str] | None = None,
    topics: Topics | None = None,
    offsets: OffsetsGiven | None = None,
    timestamps: Timestamps | None = None,
    **options: OptionValue,
) -> DataFrame:
    """Kafka's log directories as a DataFrame: what `spark.read.format("kafkalog")` reads, with
    Python values in place of JSON.

    `path` is a path or several. `topics` is a topic, several, or `{"orders": [0, 1]}` for certain
    partitions. `offsets` are from where and up to where to read, the end not included, None for
    all: `(10, None)` for each of the partitions that `topics` names, or of certain partitions,
    `{"orders": {0: (10, 20)}}`. `timestamps` are a filter on the times of records, likewise from
    and until: datetimes with a time zone, or milliseconds since 1970. Everything else is an option
    of the source by its own name, such as `mode="PERMISSIVE"` (docs/options.md).

    Raises OptionError, and LogDirError for a path without Kafka's files; what only files can tell,
    Spark raises when it reads.
    """
    from kafkalog.spark.source.early_errors import refuse_early
    from kafkalog.views.options.call_options import path_texts, source_options

    given = source_options(
        columns=columns, topics=topics, offsets=offsets, timestamps=timestamps, **options
    )
    paths = path_texts(path)
    refuse_early(paths, given)
    _register_once(spark)
    return spark.read.format("kafkalog").options(**given).load(paths)


def write(frame: DataFrame, path: str, **options: OptionValue) -> None:
    """Write a DataFrame with the columns of Kafka's records to a log directory (docs/writing.md).

    Rows are brought into the order that a log has: all of a partition in one task, sorted by
    offset. `options` are those of `df.write.format("kafkalog")`. Raises SchemaError where there is
    no column `offset` to sort by.
    """
    from kafkalog.spark.source.row_order import in_log_order
    from kafkalog.views.options.call_options import option_texts

    writer = in_log_order(frame).write.format("kafkalog").mode("append")
    writer.options(**option_texts(options)).save(path)
