"""Lag as DataFrames: the tables of the questions about it, and the lag of offsets that a DataFrame
has, for which one task has a partition's log to itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafkalog.coordination.groups.lag_question import ChosenNames, LagHistoryQuestion, LagQuestion
from kafkalog.coordination.groups.lag_status import HistoryMoments
from kafkalog.inspection.groups.commit_reach import limit_words
from kafkalog.inspection.lag.lag_columns import ACCOUNT_COLUMNS, lag_logs, with_accounts
from kafkalog.inspection.logs.past_copies import copy_words
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.inspection.metadata.current_topics import find_logs
from kafkalog.log_lines import logger
from kafkalog.questions.groups.group_parts import refuse_without_commits
from kafkalog.questions.groups.lag import ConsumerLag
from kafkalog.questions.groups.lag_history import LagHistory
from kafkalog.spark.jobs.spark_views import SparkViews
from kafkalog.spark.kept_rows import KeptRows
from kafkalog.spark.session import parallelism
from kafkalog.spark.tables import local_rows, spark_schema, with_table_schema
from kafkalog.storage.files.files import matching_paths
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.options.call_options import Paths, TimeValue, milliseconds, path_texts
from kafkalog.views.options.option_values import chosen
from kafkalog.views.options.options import Isolation, Mode

_logger = logger(__name__)
_LOG_PATH = "log_path"
_LAG, _HISTORY = "consumer_lag", "lag_history"


def consumer_lag(
    spark: SparkSession,
    path: Paths,
    *,
    groups: str | Sequence[str] = (),
    topics: str | Sequence[str] = (),
    as_of: TimeValue | None = None,
    isolation_level: str = Isolation.READ_UNCOMMITTED.value,
) -> DataFrame:
    """Return the lag of consumer groups: schemas/tables/consumer_lag.json, a row per group, topic
    and partition, now or `as_of` a past time, in the forms of `kafkalog.read`. Consumers read with
    an `isolation_level`, read_uncommitted or read_committed.

    `path` has the log directories of all brokers. Tasks of Spark read them now; damage is passed
    over. Logs a warning for what the rows do not show, such as a group that has none. Raises
    OptionError, and LogDirError where no log has commits of groups.
    """
    as_of_ms = None if as_of is None else milliseconds("as_of", as_of)
    names = _chosen(groups, topics)
    question = LagQuestion(_now_ms(), as_of_ms, _is_committed(isolation_level), chosen=names)
    lag = ConsumerLag(_views(spark, path), question)
    rows = lag.rows.rows()
    _log_limits(lag, as_of_ms)
    return with_table_schema(cast(KeptRows, rows).frame, _LAG)


def lag_history(
    spark: SparkSession,
    path: Paths,
    *,
    groups: str | Sequence[str] = (),
    topics: str | Sequence[str] = (),
    until_time: TimeValue | None = None,
    every_ms: int | None = None,
    isolation_level: str = Isolation.READ_UNCOMMITTED.value,
) -> DataFrame:
    """Return the lag of consumer groups over time: schemas/tables/lag_history.json, a row for each
    commit, or with `every_ms` for each multiple of so many milliseconds, up to `until_time`, or to
    now without it. Reads and raises as `consumer_lag` does."""
    until_ms = None if until_time is None else milliseconds("until_time", until_time)
    now_ms = _now_ms()
    question = LagHistoryQuestion(
        now_ms,
        HistoryMoments(0, now_ms if until_ms is None else until_ms, until_ms is None, every_ms),
        chosen=_chosen(groups, topics),
        read_committed=_is_committed(isolation_level),
    )
    history = LagHistory(_views(spark, path), question)
    rows = history.rows.rows()
    _log_limits(history, until_ms)
    return with_table_schema(cast(KeptRows, rows).frame, _HISTORY)


def _log_limits(found: ConsumerLag | LagHistory, at_ms: int | None) -> None:
    """Log what rows do not show, in the words of the commands. Rule: docs/sql.md F1292."""
    copies = found.rows.past_copies if isinstance(found, ConsumerLag) else ()
    for line in (*limit_words(found.reaches, at_ms), *copy_words(copies)):
        _logger.warning("%s", line)
    for line in found.without_rows:
        _logger.warning("%s", line.replace(" of --", " of ", 1))


def _views(spark: SparkSession, path: Paths) -> SparkViews:
    paths = [each for one in path_texts(path) for each in matching_paths(one)]
    logs = find_logs(paths, strict=False)
    refuse_without_commits(paths, logs)
    return SparkViews(spark, paths, logs, {"mode": Mode.PERMISSIVE.value})


def _chosen(groups: str | Sequence[str], topics: str | Sequence[str]) -> ChosenNames:
    return ChosenNames(groups=_names(groups), topics=_names(topics))


def _names(given: str | Sequence[str]) -> frozenset[str]:
    return frozenset([given] if isinstance(given, str) else given)


def _is_committed(isolation_level: str) -> bool:
    """Return whether consumers read committed records alone. Raises OptionError."""
    return chosen("isolation_level", Isolation, isolation_level) is Isolation.READ_COMMITTED


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


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
    isolation_level: str,
    now_ms: int,
    at: str | None = None,
) -> DataFrame:
    """Return rows with `topic`, `partition` and `committed_offset`, with the columns of `places`
    and of an account (`ACCOUNT_COLUMNS`; rules: docs/format.md F310 to F317).

    Consumers read with an `isolation_level`, read_uncommitted or read_committed. `at` names a
    column with the time, in milliseconds, that a row is about; without it that is `now_ms`, the
    present. Records with timestamps after `now_ms` come from wrong clocks. Account columns are null
    without a log, and where it begins later than the time; of rows without a committed offset all
    but those about the log. Raises OptionError.
    """
    is_committed = _is_committed(isolation_level)
    placed = commits.join(F.broadcast(places), ["topic", "partition"], "left")
    # As many as this, for otherwise few rows are given to one task, however large their logs are.
    tasks = max(2 * parallelism(placed.sparkSession), 16)

    def counted(rows: pa.Table) -> pa.Table:
        path = rows.column(_LOG_PATH)[0].as_py()
        log = None if path is None else lag_logs([path])[0]
        return with_accounts(rows, log, read_committed=is_committed, now_ms=now_ms, at=at)

    table = spark_schema(_LAG)
    fields = [*placed.schema.fields, *(table[name] for name in ACCOUNT_COLUMNS)]
    by_log = placed.repartition(tasks, _LOG_PATH).groupBy(_LOG_PATH)
    return by_log.applyInArrow(counted, StructType(fields))
