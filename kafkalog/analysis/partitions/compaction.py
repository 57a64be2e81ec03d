"""What a compaction report comes to, from view `compaction_report`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_PARTITION = ("cluster_id", "broker_id", "input_path", "topic", "partition")


def compaction_findings(report: DataFrame) -> DataFrame:
    """Return a row per finding: schemas/tables/compaction_findings.json."""
    return report.select(*_PARTITION, F.inline("findings"))


def compaction_totals(report: DataFrame) -> DataFrame:
    """Return one row: partitions, those with findings, due, compared with an earlier copy; and
    sums."""
    is_faulty = (F.col("errors") > 0) | (F.col("warnings") > 0)
    return report.agg(
        F.count("*").alias("partitions"),
        F.count_if(is_faulty).alias("faulty_partitions"),
        F.count_if("is_due").alias("due_partitions"),
        F.count_if(F.isnull("is_due") & F.isnotnull("dirty_bytes")).alias("unknown_partitions"),
        F.count("before_directory").alias("compared"),
        *(
            F.coalesce(F.sum(name), F.lit(0)).alias(name)
            for name in (
                "errors",
                "warnings",
                "cleaned_records",
                "expired_tombstones",
                "freeable_bytes",
                "unread_bytes",
            )
        ),
    )
