"""Views about one internal topic, which the log directories may have or not."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.spark.tables import spark_schema
from kafkalog.storage.partition_log import PartitionLog


def topic_view(
    spark: SparkSession,
    view: str,
    topic: str,
    logs: Sequence[PartitionLog],
    log_dirs: Sequence[str],
    mode: str,
) -> DataFrame:
    """The view of the topic under the log directories; empty where none of their `logs` has it."""
    if not any(log.topic == topic for log in logs):
        return spark.createDataFrame([], spark_schema(view))
    reader = spark.read.format("kafkalog").option("view", view).option("mode", mode)
    return reader.option("subscribe", topic).load(list(log_dirs))
