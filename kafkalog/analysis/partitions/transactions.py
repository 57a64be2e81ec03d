"""Transactions with what their coordinators know, from the views `transactions`, `stable_offsets`
and `transaction_states`. Rule: docs/format.md F216.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.schemas import table_fields

_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")
_STATE_FIELDS = ("transactional_id", "producer_id", "state", "partitions", "started_ms")
_STATE = (
    "struct<transactional_id:string,producer_id:bigint,state:string,"
    "partitions:array<struct<topic:string,partitions:array<int>>>,started_ms:bigint>"
)


def transactions_with_states(
    transactions: DataFrame, stable_offsets: DataFrame, states: DataFrame | None
) -> DataFrame:
    """Return the transactions with the columns of schemas/tables/transaction_report.json, those of
    open transactions not decided yet, and two more: coordinator_state, the last record about the
    producer's transactional id, and holder, the producer that holds the last stable offset.

    `states` is view `transaction_states`; None where the input does not have that topic.
    """
    holders = stable_offsets.select(*_LOG, F.col("holder_producer_id").alias("holder"))
    joined = transactions.join(holders, _same(transactions, holders, _LOG), "left").select(
        transactions["*"], "holder"
    )
    if states is None:
        joined = joined.withColumn("coordinator_state", F.lit(None).cast(_STATE))
    else:
        known = _by_producer(states)
        same = _same(joined, known, ("cluster_id", "producer_id"))
        joined = joined.join(known, same, "left").select(joined["*"], "coordinator_state")
    state = F.col("coordinator_state")
    return joined.withColumns(
        {
            "transactional_id": state["transactional_id"],
            "transaction_state": state["state"],
            "reason": F.lit(None).cast("string"),
            "started_ms": F.lit(None).cast("long"),
            "is_stable_offset_holder": F.lit(False),
        }
    )


def _by_producer(records: DataFrame) -> DataFrame:
    """Return for each producer id the last record about the transactional id that has or had it."""
    by_id = records.groupBy("cluster_id", "transactional_id").agg(
        F.max_by(F.struct(*_STATE_FIELDS), "record_offset").alias("last"),
        F.max("record_offset").alias("record_offset"),
        F.collect_set("producer_id").alias("producers"),
    )
    # A producer id belongs to one transactional id; where two claim it, the later record counts.
    return (
        by_id.withColumn("producer_id", F.explode("producers"))
        .groupBy("cluster_id", "producer_id")
        .agg(F.max_by("last", "record_offset").alias("coordinator_state"))
    )


def _same(one: DataFrame, other: DataFrame, columns: tuple[str, ...]) -> Column:
    """Return the condition that these columns are equal; null equals null."""
    condition = F.lit(True)
    for name in columns:
        condition = condition & one[name].eqNullSafe(other[name])
    return condition


def stable_offset_table(stable_offsets: DataFrame) -> DataFrame:
    """Return a row per partition: schemas/tables/stable_offsets.json."""
    return stable_offsets.select(*(field["name"] for field in table_fields("stable_offsets")))


def open_transactions(report: DataFrame) -> DataFrame:
    """Return the transactions that have not ended, oldest first, with columns for a terminal."""
    found = report.where(F.col("outcome").isin("open", "hanging"))
    return found.orderBy(
        F.coalesce("started_ms", "first_timestamp_ms"), "topic", "partition"
    ).select(
        *("topic", "partition", "outcome", "reason", "producer_id", "transactional_id"),
        *("first_offset", "records", "duration_ms", "is_stable_offset_holder"),
    )


def outcome_totals(report: DataFrame) -> DataFrame:
    """Return how many transactions have each outcome."""
    return report.groupBy("outcome").agg(F.count("*").alias("transactions"))
