"""Becomes the module `pyspark_kafkalog` in the wheel: there Spark finds the source by itself."""

from kafkalog.spark.source.data_source import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
