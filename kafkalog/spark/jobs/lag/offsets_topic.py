"""How far back the logs of `__consumer_offsets` tell what was."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.inspection.groups.complete_from import complete_from
from kafkalog.spark.log_rows import rows_of_logs
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.storage.partition_log import PartitionLog

# Columns of what tells how far commits are complete.
REACH = (
    "cluster_id string, broker_id int, internal_partition int, complete_from_offset bigint, "
    "complete_from_ms bigint, damaged_ranges bigint"
)


def commits_complete_from(spark: SparkSession, logs: Sequence[PartitionLog]) -> DataFrame:
    """A row per log of `__consumer_offsets`: cluster_id, broker_id,
    internal_partition, complete_from_offset, complete_from_ms, null for at all times, and
    damaged_ranges.

    States of all groups can be told exactly from the latest of these times on. Rule:
    docs/format.md F328.
    """

    def reach(log: PartitionLog) -> tuple[object, ...]:
        return log.log_dir.cluster_id, log.log_dir.broker_id, log.partition, *complete_from(log)

    found = [log for log in logs if log.topic == CONSUMER_OFFSETS and log.is_live]
    return rows_of_logs(spark, found, REACH, reach)
