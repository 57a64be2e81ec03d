"""Becomes the module `pyspark_kafkalog` in the wheel: there Spark finds the source by itself."""

from kafkalog.spark.source.source import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
