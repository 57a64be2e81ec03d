"""What the tables of the recovery plan come to."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def recovery_totals(plan: DataFrame) -> DataFrame:
    """One row: partitions, how many keep a broker from starting, what is lost and can be saved."""
    has_loss = F.col("lost_bytes") > 0
    return plan.agg(
        F.count("*").alias("partitions"),
        F.count_if(~F.col("broker_starts")).alias("start_errors"),
        F.count_if(has_loss).alias("cut_partitions"),
        F.count_if(F.col("missing_offsets") > 0).alias("short_partitions"),
        *(
            F.coalesce(F.sum(name), F.lit(0)).alias(name)
            for name in (
                *("lost_bytes", "lost_records", "salvageable_bytes", "salvageable_records"),
                "missing_offsets",
            )
        ),
    )


def with_losses(plan: DataFrame) -> DataFrame:
    """The partitions that lose something or keep a broker from starting, in order."""
    loses = (F.col("lost_bytes") > 0) | (F.col("missing_offsets") > 0) | ~F.col("broker_starts")
    return plan.where(loses).orderBy("topic", "partition")
