"""Transactions by topic, and who holds last stable offsets, from the tables of their report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.partitions.storage_totals import shown_topic

_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")


def outcomes_by_topic(report: DataFrame, topics: Sequence[str | None]) -> DataFrame:
    """Return a row per shown topic and outcome of table `transaction_report`: transactions,
    records."""
    by_outcome = report.groupBy(shown_topic(topics), "outcome")
    return by_outcome.agg(
        F.count("*").alias("transactions"), F.sum("records").alias("records")
    ).orderBy("shown_topic", "outcome")


def stable_offset_holders(report: DataFrame, stable_offsets: DataFrame) -> DataFrame:
    """Return a row per partition that an open transaction holds back, the most offsets first: the
    log's columns, offsets_held_back, last_stable_offset, and the transaction's producer_id,
    transactional_id, outcome, reason, started_ms and first_timestamp_ms."""
    held = stable_offsets.where("offsets_held_back > 0").alias("held")
    of_holder = report.where("is_stable_offset_holder").alias("holders")
    same = [F.col(f"held.{name}").eqNullSafe(F.col(f"holders.{name}")) for name in _LOG]
    found = held.join(of_holder, reduce(and_, same), "left").select(
        *(f"held.{name}" for name in (*_LOG, "offsets_held_back", "last_stable_offset")),
        F.coalesce("holders.producer_id", "held.holder_producer_id").alias("producer_id"),
        *("transactional_id", "outcome", "reason", "started_ms", "first_timestamp_ms"),
    )
    return found.orderBy(F.desc("offsets_held_back"), "topic", "partition")
