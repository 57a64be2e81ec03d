"""What is shown of a report on transactions: schemas/tables/transaction_report.json."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def open_transactions(report: DataFrame) -> DataFrame:
    """Return the transactions that have not ended, oldest first, with columns for a terminal."""
    found = report.where(F.col("outcome").isin("open", "hanging"))
    return found.orderBy(
        F.coalesce("started_ms", "first_timestamp_ms"), "topic", "partition"
    ).select(
        *("topic", "partition", "outcome", "reason", "producer_id", "transactional_id"),
        *("first_offset", "records", "duration_ms", "is_stable_offset_holder"),
    )
