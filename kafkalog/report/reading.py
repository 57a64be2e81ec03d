"""From log directories to the rows of a report: each part asks its views and collects little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafkalog import __version__
from kafkalog.analysis.partitions.batch_totals import (
    BATCH_COLUMNS,
    TimeGrid,
    batch_totals,
    summed,
    time_spread,
)
from kafkalog.analysis.partitions.damage_map import damage_map, first_ranges
from kafkalog.analysis.partitions.key_skew import SKEW_COLUMNS, key_totals
from kafkalog.analysis.partitions.retention import retention_plan
from kafkalog.analysis.partitions.retention_times import blocked_topics, retention_times
from kafkalog.analysis.partitions.storage_totals import (
    largest_topics,
    longest_copies,
    owners,
    storage_totals,
    topic_storage,
    unserved_storage,
)
from kafkalog.analysis.partitions.transaction_totals import outcomes_by_topic, stable_offset_holders
from kafkalog.analysis.partitions.transactions import stable_offset_table, transactions_with_states
from kafkalog.coordination.groups.transactional_ids import OpenTransactionRule
from kafkalog.errors import OptionError
from kafkalog.report.contents import (
    BatchesSection,
    DamageSection,
    KeysSection,
    Report,
    RetentionSection,
    StorageSection,
    TransactionsSection,
)
from kafkalog.report.group_reading import read_groups
from kafkalog.report.time_grid import grid_over
from kafkalog.spark.jobs.transaction_judgement import judged_transactions
from kafkalog.spark.topic_views import transaction_views

# What a page has room for; the rest is shown as sums.
TOPICS = 12
PARTITIONS = 24
RANGES = 5
HOLDERS = 20
# A phone's strip has two pixels for each.
CELLS = 160
# `transaction.max.timeout.ms` of a broker, by default.
LONGEST_TRANSACTION_MS = 15 * 60_000


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """What a report is to be about: log directories, globs resolved; the time it is of; what to do
    about damage; options with the cluster's settings; whether keys are shown; which partitions only
    checkpoints know, in words."""

    log_dirs: Sequence[str]
    at_ms: int
    mode: str
    config: Mapping[str, str] = field(default_factory=dict)
    shows_keys: bool = False
    absent: Sequence[str] = ()


def read_report(spark: SparkSession, request: ReportRequest) -> Report:
    """Return the rows of a report. Raises OptionError for log directories of several clusters, and
    what the views raise."""
    segments = _view(spark, request, "segments").persist()
    storage = _storage(segments)
    clusters = sorted({row.cluster_id for row in storage.owners if row.cluster_id is not None})
    if len(clusters) > 1:
        raise OptionError("LOG_DIR", ", ".join(clusters), "log directories of one cluster")
    topics = [row.topic for row in storage.topics]
    batches = _batches(_view(spark, request, "batches"), longest_copies(segments), topics)
    return Report(
        __version__,
        request.at_ms,
        request.log_dirs,
        storage,
        batches,
        _keys(spark, request, topics),
        _damage(_view(spark, request, "byte_ranges")),
        read_groups(spark, request.log_dirs, request.mode, batches.latest_ms, request.at_ms),
        _transactions(spark, request, topics),
        _retention(spark, request, topics),
        request.absent,
    )


def _view(
    spark: SparkSession,
    request: ReportRequest,
    name: str,
    topics: str | None = "*",
    **options: object,
) -> DataFrame:
    reader = spark.read.format("kafkalog").option("view", name).option("mode", request.mode)
    if topics is not None:
        reader = reader.option("subscribe", topics)
    for option, value in options.items():
        reader = reader.option(option, str(value))
    return reader.load(list(request.log_dirs))


def _one(frame: DataFrame) -> Row:
    (row,) = frame.collect()
    return row


def _storage(segments: DataFrame) -> StorageSection:
    totals = topic_storage(segments).persist()
    return StorageSection(
        owners(segments).collect(),
        largest_topics(totals, TOPICS).collect(),
        _one(storage_totals(totals)),
        _one(unserved_storage(segments)),
    )


def _batches(
    batches: DataFrame, longest: DataFrame, topics: Sequence[str | None]
) -> BatchesSection:
    spread = _one(time_spread(batches.select("max_timestamp_ms")))
    has_times = spread.least_ms is not None
    times = (spread.least_ms, spread.low_ms, spread.high_ms, spread.greatest_ms)
    grid = grid_over(*times) if has_times else TimeGrid(0, 1, 0)
    read = batches.select(*BATCH_COLUMNS)
    all_totals = batch_totals(read, longest, topics, grid).persist()
    totals = all_totals.where("NOT is_control")
    return BatchesSection(
        grid if has_times else None,
        spread.high_ms or 0,
        summed(totals, "shown_topic", "stretch").collect(),
        summed(totals, "shown_topic", "compression").collect(),
        summed(totals, "compression", "size_from").collect(),
        summed(all_totals.where("is_control"), "shown_topic").collect(),
    )


def _keys(spark: SparkSession, request: ReportRequest, topics: Sequence[str | None]) -> KeysSection:
    records = _view(spark, request, "records", None, columns=",".join(SKEW_COLUMNS))
    found = key_totals(records, topics, shows_keys=request.shows_keys)
    return KeysSection(found.collect(), request.shows_keys)


def _damage(byte_ranges: DataFrame) -> DamageSection:
    ranges = byte_ranges.persist(StorageLevel.MEMORY_AND_DISK)
    logs = damage_map(ranges, CELLS).persist()
    totals = logs.agg(
        F.count("*").alias("partitions"),
        F.count_if(F.col("errors") > 0).alias("damaged_partitions"),
        *(
            F.coalesce(F.sum(name), F.lit(0)).alias(name)
            for name in ("bytes", "ranges", "errors", "faulty_bytes", "trailing_bytes")
        ),
    )
    shown = logs.limit(PARTITIONS).collect()
    of_shown = F.concat_ws("-", "topic", "partition").isin(
        [f"{row.topic}-{row.partition}" for row in shown if row.ranges]
    )
    found = first_ranges(ranges.where(of_shown), RANGES).collect()
    return DamageSection(CELLS, shown, found, _one(totals))


def _transactions(
    spark: SparkSession, request: ReportRequest, topics: Sequence[str | None]
) -> TransactionsSection:
    views = transaction_views(spark, request.log_dirs, mode=request.mode, at_ms=request.at_ms)
    stable = stable_offset_table(views.stable_offsets).persist()
    rule = OpenTransactionRule(request.at_ms, LONGEST_TRANSACTION_MS, views.incomplete)
    found = transactions_with_states(views.transactions, stable, views.states)
    report = judged_transactions(found, rule).persist()
    return TransactionsSection(
        outcomes_by_topic(report, topics).collect(),
        stable_offset_holders(report, stable).limit(HOLDERS).collect(),
        stable.where("offsets_held_back > 0").count(),
    )


def _retention(
    spark: SparkSession, request: ReportRequest, topics: Sequence[str | None]
) -> RetentionSection:
    view = _view(spark, request, "retention_plan", asOf=request.at_ms, **request.config)
    plan = retention_plan(view).persist()
    return RetentionSection(
        retention_times(plan, topics).collect(), blocked_topics(plan).limit(TOPICS).collect()
    )
