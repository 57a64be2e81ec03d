"""Lag of committed offsets in a DataFrame: one task has a partition's log to itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafkalog.columns.arrays import fixed_width, integers
from kafkalog.columns.compiled import LongArray
from kafkalog.columns.lag_account import LagAccounts, lag_accounts
from kafkalog.columns.replica_facts import replica_sets
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.spark.tables import table_schema
from kafkalog.storage.log_dir import find_partitions, topic_id
from kafkalog.storage.oldest_log import is_oldest_layout

_LOG = ("topic", "partition")
_LOG_PATH = "log_path"
# Of an account, in the order of table `consumer_lag`.
ACCOUNT_COLUMNS = (
    "log_start_offset",
    "high_watermark",
    "last_stable_offset",
    "lag",
    "readable_records",
    "control_records",
    "aborted_records",
    "gaps",
    "beyond_last_stable",
    "below_log_start",
    "in_tiered_storage",
    "damaged",
    "ahead_of_log",
    "next_offset",
    "next_timestamp_ms",
    "timestamp_type",
    "newest_timestamp_ms",
    "consumed_timestamp_ms",
)
# Those in which -1 stands for none.
_OPTIONAL = ACCOUNT_COLUMNS[ACCOUNT_COLUMNS.index("next_offset") :]


def log_places(spark: SparkSession, log_dirs: Sequence[str], *, strict: bool) -> DataFrame:
    """The partitions in log directories, of replicas the best: `topic`, `partition`, `log_path`,
    `log_topic_id` and `log_broker_id`. Raises LogDirError as `find_partitions` does."""
    logs = [log for log in find_partitions(log_dirs, strict=strict) if not is_oldest_layout(log)]
    rows = [
        (best.topic, best.partition, best.path, topic_id(best), best.log_dir.broker_id)
        for best in (replicas.best for replicas in replica_sets(logs))
        if best.is_live
    ]
    schema = "topic string, partition int, log_path string, log_topic_id string, log_broker_id int"
    return spark.createDataFrame(rows, schema)


def with_lag(
    commits: DataFrame, places: DataFrame, *, read_committed: bool, at: str | None = None
) -> DataFrame:
    """Rows with `topic`, `partition` and `committed_offset`, with the columns of `places` and of an
    account (`ACCOUNT_COLUMNS`; rules: docs/format.md F310 to F317).

    `at` names a column with the moment, in milliseconds, that a row is about; without it that is
    now. Account columns are null where there is no log, and where it begins later than the moment.
    """
    fields = {field.name: field for field in table_schema("consumer_lag")}
    account = StructType([fields[name] for name in ACCOUNT_COLUMNS])
    placed = commits.join(F.broadcast(places), list(_LOG), "left")
    absent = placed.where(F.col(_LOG_PATH).isNull()).select(
        "*", *(F.lit(None).cast(field.dataType).alias(field.name) for field in account)
    )
    # As many as this, for otherwise few rows are given to one task, however large their logs are.
    tasks = max(2 * placed.sparkSession.sparkContext.defaultParallelism, 16)
    counted = (
        placed.where(F.col(_LOG_PATH).isNotNull())
        .repartition(tasks, _LOG_PATH)
        .groupBy(_LOG_PATH)
        .applyInArrow(
            _counting(read_committed=read_committed, at=at),
            StructType([*placed.schema.fields, *account.fields]),
        )
    )
    return counted.unionByName(absent)


def _counting(*, read_committed: bool, at: str | None) -> Callable[[pa.Table], pa.Table]:
    def count(rows: pa.Table) -> pa.Table:
        (log,) = find_partitions([rows.column(_LOG_PATH)[0].as_py()], strict=False)
        accounts = lag_accounts(
            log,
            _numbers(rows, "committed_offset"),
            None if at is None else _numbers(rows, at),
            read_committed=read_committed,
        )
        for name in ACCOUNT_COLUMNS:
            rows = rows.append_column(name, _account_column(accounts, name))
        return rows

    return count


def _numbers(rows: pa.Table, name: str) -> LongArray:
    return np.concatenate([integers(chunk) for chunk in rows.column(name).chunks])


def _account_column(accounts: LagAccounts, name: str) -> pa.Array:
    values = getattr(accounts, name)
    if name == "log_start_offset":
        return fixed_width(values, pa.int64())
    is_null = accounts.is_before_log
    if name in _OPTIONAL:
        is_null = is_null | (values == NO_VALUE)
    data_type = pa.int32() if name == "timestamp_type" else pa.int64()
    return fixed_width(values, data_type, is_null)
