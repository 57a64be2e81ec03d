"""Lag of committed offsets in a DataFrame: one task has a partition's log to itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from kafkalog.inspection.lag.lag_columns import ACCOUNT_COLUMNS, find_log, with_accounts
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.spark.session import parallelism
from kafkalog.spark.tables import local_rows, spark_schema
from kafkalog.storage.partition_log import PartitionLog

_LOG = ("topic", "partition")
_LOG_PATH = "log_path"
# Adds columns to the rows about a log.
CountLag = Callable[[pa.Table, PartitionLog | None], pa.Table]


def log_places(spark: SparkSession, logs: Sequence[PartitionLog]) -> DataFrame:
    """Return where the partitions are, the best of several replicas: `topic`, `partition`,
    `log_path`, `log_broker_id`."""
    rows = [(log.topic, log.partition, log.path, log.log_dir.broker_id) for log in best_logs(logs)]
    schema = "topic string, partition int, log_path string, log_broker_id int"
    return local_rows(spark, rows, schema)


def with_lag(
    commits: DataFrame,
    places: DataFrame,
    *,
    read_committed: bool,
    now_ms: int,
    at: str | None = None,
) -> DataFrame:
    """Return rows with `topic`, `partition` and `committed_offset`, with the columns of `places`
    and of an account (`ACCOUNT_COLUMNS`; rules: docs/format.md F310 to F317).

    `at` names a column with the time, in milliseconds, that a row is about; without it that is
    `now_ms`, the present. Records with timestamps after `now_ms` come from wrong clocks. Account
    columns are null without a log, and where it begins later than the time; of rows
    without a committed offset all but those about the log.
    """
    count = _counting(read_committed=read_committed, now_ms=now_ms, at=at)
    return by_log(commits, places, count, account_fields())


def by_log(
    commits: DataFrame, places: DataFrame, count: CountLag, added: Sequence[StructField]
) -> DataFrame:
    """Return rows with `topic` and `partition` with the columns of `places`, and those that `count`
    adds to the rows about a log; it is called where that log's files are, with None for rows about
    logs that the input does not have."""
    placed = commits.join(F.broadcast(places), list(_LOG), "left")
    # As many as this, for otherwise few rows are given to one task, however large their logs are.
    tasks = max(2 * parallelism(placed.sparkSession), 16)

    def counted(rows: pa.Table) -> pa.Table:
        path = rows.column(_LOG_PATH)[0].as_py()
        return count(rows, None if path is None else find_log(path))

    return (
        placed.repartition(tasks, _LOG_PATH)
        .groupBy(_LOG_PATH)
        .applyInArrow(counted, StructType([*placed.schema.fields, *added]))
    )


def account_fields() -> list[StructField]:
    """Return the fields of an account, as table `consumer_lag` has them."""
    table = spark_schema("consumer_lag")
    return [table[name] for name in ACCOUNT_COLUMNS]


def _counting(*, read_committed: bool, now_ms: int, at: str | None) -> CountLag:
    def count(rows: pa.Table, log: PartitionLog | None) -> pa.Table:
        return with_accounts(rows, log, read_committed=read_committed, now_ms=now_ms, at=at)

    return count
