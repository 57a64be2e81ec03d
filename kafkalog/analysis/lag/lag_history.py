"""Statuses of groups from table `lag_history`. Rules: docs/format.md F332 and F338."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kafkalog.analysis.lag.groups import GROUP_KEY
from kafkalog.analysis.readable import timestamp_column
from kafkalog.coordination.groups.group_statuses import PARTITION_COLUMNS, group_statuses

_END = "end"
# The columns of GroupStatus.
_STATUSES = pa.schema(
    [
        *(("cluster_id", pa.string()), ("group_id", pa.string()), ("rank", pa.int64())),
        *(("status", pa.string()), ("burrow_status", pa.string()), ("partitions", pa.int64())),
        *((name, pa.int64()) for name in ("errors", "readable_records")),
        *((name, pa.int64()) for name in ("behind_since_ms", "last_commit_ms")),
        *(("topic", pa.string()), ("partition", pa.int32()), ("reason", pa.string())),
    ]
)


def newest_statuses(history: DataFrame) -> DataFrame:
    """Return a row per group from the last rows of its partitions, the worst first: group_id,
    status (F338), burrow_status (F332), partitions, those with an error, records left to read, the
    time of the first of them, the last commit, and the reason of the worst partition."""

    def statuses(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        found = [each._asdict() for each in group_statuses(rows)]
        yield from pa.Table.from_pylist(found, schema=_STATUSES).to_batches()

    ends = history.where(F.col("event") == _END).select(*PARTITION_COLUMNS)
    found = ends.repartition(*GROUP_KEY).mapInArrow(statuses, from_arrow_schema(_STATUSES))
    return found.orderBy(F.desc("rank"), F.desc("readable_records"), "group_id").select(
        *("group_id", "status", "burrow_status", "partitions", "errors", "readable_records"),
        timestamp_column(F.col("behind_since_ms")).alias("behind_since"),
        timestamp_column(F.col("last_commit_ms")).alias("last_commit"),
        *("topic", "partition", "reason"),
    )


def status_totals(statuses: DataFrame) -> DataFrame:
    """Return how many groups have each status, from rows of newest_statuses."""
    return statuses.groupBy("status").agg(F.count("*").alias("groups"))
