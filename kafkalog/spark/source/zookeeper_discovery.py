"""Becomes the module `pyspark_zookeeper` in the wheel: there Spark finds the source by itself."""

from kafkalog.spark.source.zookeeper_source import ZookeeperDataSource as DefaultSource

__all__ = ["DefaultSource"]
