"""Statuses of groups from table `lag_history`. Rules: docs/format.md F332 and F338."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kafkalog.analysis.lag.groups import GROUP_KEY
from kafkalog.analysis.readable import timestamp_column
from kafkalog.inspection.lag.group_statuses import (
    PARTITION_COLUMNS,
    RANK,
    STATUSES,
    group_status_batches,
)

_END = "end"


def newest_statuses(history: DataFrame) -> DataFrame:
    """Return a row per group from the last rows of its partitions, the worst first: group_id,
    status (F338), burrow_status (F332), partitions, those with an error, records left to read, the
    time of the first of them, the last commit, and the reason of the worst partition."""

    def statuses(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from group_status_batches(batches)

    ends = history.where(F.col("event") == _END).select(*PARTITION_COLUMNS)
    found = ends.repartition(*GROUP_KEY).mapInArrow(statuses, from_arrow_schema(STATUSES))
    return found.orderBy(F.desc(RANK), F.desc("readable_records"), "group_id").select(
        *("group_id", "status", "burrow_status", "partitions", "errors", "readable_records"),
        timestamp_column(F.col("behind_since_ms")).alias("behind_since"),
        timestamp_column(F.col("last_commit_ms")).alias("last_commit"),
        *("topic", "partition", "reason"),
    )


def status_totals(statuses: DataFrame) -> DataFrame:
    """Return how many groups have each status, from rows of newest_statuses."""
    return statuses.groupBy("status").agg(F.count("*").alias("groups"))
