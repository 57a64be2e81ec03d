"""Kafka's log files as Spark DataFrames, read in bulk and without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__version__ = "0.1.0"


def register(spark: SparkSession) -> None:
    """Make `format("kafkalog")` and `format("zookeeper")` known to a session that did not find them
    by itself."""
    from kafkalog.spark.source import KafkaLogDataSource
    from kafkalog.spark.zookeeper_source import ZookeeperDataSource

    spark.dataSource.register(KafkaLogDataSource)
    spark.dataSource.register(ZookeeperDataSource)
