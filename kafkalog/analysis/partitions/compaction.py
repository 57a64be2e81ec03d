"""What a compaction report comes to, from view `compaction_report`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_PARTITION = ("cluster_id", "broker_id", "input_path", "topic", "partition")


@dataclass
class CompactionTotals:
    """How many partitions there are, have findings, are due for cleaning, are possibly due, and
    were compared with an earlier copy; and the sums of their findings, records and bytes."""

    partitions: int = 0
    faulty_partitions: int = 0
    due_partitions: int = 0
    unknown_partitions: int = 0
    compared: int = 0
    errors: int = 0
    warnings: int = 0
    cleaned_records: int = 0
    freeable_bytes: int = 0
    unread_bytes: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a partition, a row of the view."""
        self.partitions += 1
        self.faulty_partitions += bool(row["errors"] or row["warnings"])
        self.due_partitions += bool(row["is_due"])
        self.unknown_partitions += row["is_due"] is None and row["dirty_bytes"] is not None
        self.compared += row["before_directory"] is not None
        for name in ("errors", "warnings", "cleaned_records", "freeable_bytes", "unread_bytes"):
            setattr(self, name, getattr(self, name) + (row[name] or 0))


def compaction_findings(report: DataFrame) -> DataFrame:
    """Return a row per finding: schemas/tables/compaction_findings.json."""
    return report.select(*_PARTITION, F.inline("findings"))


def compaction_totals(report: Iterable[Mapping[str, Any]]) -> CompactionTotals:
    """Return what the rows come to."""
    totals = CompactionTotals()
    for row in report:
        totals.add(row)
    return totals
