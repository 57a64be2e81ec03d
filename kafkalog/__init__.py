"""Kafka's log files as Spark DataFrames, read in bulk and without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__version__ = "0.1.0"


def register(spark: SparkSession) -> None:
    """Make `format("kafkalog")` and `format("zookeeper")` known to a session that did not find them
    by itself."""
    from kafkalog.spark.source import KafkaLogDataSource
    from kafkalog.spark.zookeeper_source import ZookeeperDataSource

    spark.dataSource.register(KafkaLogDataSource)
    spark.dataSource.register(ZookeeperDataSource)


def write(frame: DataFrame, path: str, **options: object) -> None:
    """Write a DataFrame with the columns of Kafka's records to a log directory (docs/writing.md).

    Rows are brought into the order that a log has: all of a partition in one task, sorted by
    offset. `options` are those of `df.write.format("kafkalog")`. Raises SchemaError where there is
    no column `offset` to sort by.
    """
    from kafkalog.spark.row_order import in_log_order

    writer = in_log_order(frame).write.format("kafkalog").mode("append")
    writer.options(**{name: str(value) for name, value in options.items()}).save(path)
