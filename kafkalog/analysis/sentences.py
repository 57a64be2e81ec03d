"""Ages in words, as columns: `kafkalog.words` writes them, inside tasks."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafkalog.words import age_text


def age_column(age_ms: Column) -> Column:
    """Return how long ago something was; null for null."""
    return F.udf(_age, "string", useArrow=True)(age_ms)


def _age(age_ms: int | None) -> str | None:
    return None if age_ms is None else age_text(age_ms)
