"""Transactions with the names and states that their coordinators have for them, from the views
`transactions`, `stable_offsets` and `transaction_states`. Rule: docs/format.md F216.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.schemas import table_fields

_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")


def transaction_report(
    transactions: DataFrame,
    stable_offsets: DataFrame,
    states: DataFrame | None,
    *,
    at_ms: int,
    longest_transaction_ms: int,
    incomplete: Collection[str | None],
) -> DataFrame:
    """A row per transaction and partition: schemas/tables/transaction_report.json.

    `states` is view `transaction_states`; None where the input does not have that topic: then no
    transaction is called hanging. `incomplete` are the clusters of which not all partitions of it
    are there: who no coordinator knows is not called hanging.
    """
    holders = stable_offsets.select(*_LOG, F.col("holder_producer_id").alias("holder"))
    named = transactions.join(holders, _same(transactions, holders, _LOG), "left").select(
        transactions["*"],
        F.coalesce(
            (F.col("outcome") == "open") & (F.col("producer_id") == F.col("holder")), F.lit(False)
        ).alias("is_stable_offset_holder"),
    )
    judged = _without_states(named) if states is None else _with_states(named, states)
    with_states = _with_starts(judged, at_ms)
    is_recent = at_ms - F.col("last_timestamp_ms") <= longest_transaction_ms
    is_incomplete = F.lit(False)
    for cluster_id in incomplete:
        is_incomplete = is_incomplete | F.col("cluster_id").eqNullSafe(F.lit(cluster_id))
    says = F.col("coordinator_says")
    said = F.when(is_incomplete & (says == "no_transactional_id"), "unknown").otherwise(says)
    reason = F.when(
        F.col("outcome") == "open",
        F.when(is_recent, "recent").otherwise(said),
    )
    is_hanging = F.col("reason").isin("no_transactional_id", "not_in_transaction")
    report = (
        with_states.withColumn("reason", reason)
        .withColumn("outcome", F.when(is_hanging, "hanging").otherwise(F.col("outcome")))
        .withColumn("at_ms", F.lit(at_ms))
    )
    return report.select(*(field["name"] for field in table_fields("transaction_report")))


def _without_states(transactions: DataFrame) -> DataFrame:
    nothing = F.lit(None).cast("string")
    return (
        transactions.withColumn("transactional_id", nothing)
        .withColumn("transaction_state", nothing)
        .withColumn("coordinator_says", F.lit("unknown"))
        .withColumn("state_started_ms", F.lit(None).cast("long"))
    )


def _with_starts(transactions: DataFrame, at_ms: int) -> DataFrame:
    """With started_ms, which goes before the first record's time where the coordinator tells it."""
    is_known = (F.col("outcome") == "open") & (F.col("coordinator_says") == "known")
    started_ms = F.when(is_known, F.col("state_started_ms"))
    since_start_ms = F.lit(at_ms) - started_ms
    return transactions.withColumn("started_ms", started_ms).withColumn(
        "duration_ms", F.coalesce(since_start_ms, "duration_ms")
    )


def _with_states(transactions: DataFrame, records: DataFrame) -> DataFrame:
    """With the transactional id of each producer, and what its coordinator knows of it now."""
    now = F.struct(F.col("producer_id").alias("producer_now"), "state", "partitions", "started_ms")
    by_id = records.groupBy("cluster_id", "transactional_id").agg(
        F.max_by(now, "record_offset").alias("now"),
        F.max("record_offset").alias("record_offset"),
        F.collect_set("producer_id").alias("producers"),
    )
    # A producer id belongs to one transactional id; where two claim it, the later record counts.
    states = (
        by_id.withColumn("producer_id", F.explode("producers"))
        .groupBy("cluster_id", "producer_id")
        .agg(F.max_by(F.struct("transactional_id", "now.*"), "record_offset").alias("known"))
        .select("cluster_id", "producer_id", "known.*")
    )
    joined = transactions.join(
        states, _same(transactions, states, ("cluster_id", "producer_id")), "left"
    )
    return joined.select(
        transactions["*"],
        states["transactional_id"],
        F.col("state").alias("transaction_state"),
        F.col("started_ms").alias("state_started_ms"),
        F.when(
            F.coalesce(F.col("producer_now") != transactions["producer_id"], F.lit(True)),
            "no_transactional_id",
        )
        .when(_takes_part(transactions["topic"], transactions["partition"]), "known")
        .otherwise("not_in_transaction")
        .alias("coordinator_says"),
    )


def _takes_part(topic: Column, partition: Column) -> Column:
    """Whether the coordinator has the partition in the producer's transaction."""
    return F.coalesce(
        F.exists(
            F.col("partitions"),
            lambda each: (each["topic"] == topic) & F.array_contains(each["partitions"], partition),
        ),
        F.lit(False),
    )


def _same(one: DataFrame, other: DataFrame, columns: tuple[str, ...]) -> Column:
    """That these columns are equal, null being equal to null."""
    condition = F.lit(True)
    for name in columns:
        condition = condition & one[name].eqNullSafe(other[name])
    return condition


def stable_offset_table(stable_offsets: DataFrame) -> DataFrame:
    """A row per partition: schemas/tables/stable_offsets.json."""
    return stable_offsets.select(*(field["name"] for field in table_fields("stable_offsets")))


def open_transactions(report: DataFrame) -> DataFrame:
    """The transactions that have not ended, the oldest first, in the columns for a terminal."""
    found = report.where(F.col("outcome").isin("open", "hanging"))
    return found.orderBy(
        F.coalesce("started_ms", "first_timestamp_ms"), "topic", "partition"
    ).select(
        *("topic", "partition", "outcome", "reason", "producer_id", "transactional_id"),
        *("first_offset", "records", "duration_ms", "is_stable_offset_holder"),
    )


def outcome_totals(report: DataFrame) -> DataFrame:
    """How many transactions there are of each outcome."""
    return report.groupBy("outcome").agg(F.count("*").alias("transactions"))
