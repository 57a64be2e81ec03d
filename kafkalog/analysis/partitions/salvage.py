"""The tables of a salvage, from the rows that its tasks give."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_PARTITION = ("cluster_id", "broker_id", "input_path", "topic", "partition")


def lost_ranges(salvaged: DataFrame) -> DataFrame:
    """Return a row per range that was not written: schemas/tables/lost_ranges.json."""
    return salvaged.select(*_PARTITION, F.inline("lost_ranges"))
