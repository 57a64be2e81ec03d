"""Columns as a person reads them: bytes as text, moments as timestamps. Rules: docs/notebooks.md.

For a screen. What is computed with goes on from the frame itself.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructField

# Columns that end in _ms and are durations, not times.
DURATIONS_MS = (
    "duration_ms",
    "freshness_ms",
    "rebalance_timeout_ms",
    "retention_ms",
    "time_difference_ms",
    "time_lag_ms",
    "timeout_ms",
    "ttl_ms",
    "unflushed_ms",
    "unowned_ms",
    "wait_before_commit_ms",
)
# Years 1 to 9999: what Python's datetime can hold.
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
# What would move the cursor or hide in a cell; tabs and ends of lines are usual in text.
_UNPRINTABLE = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x7F]"


def readable(frame: DataFrame) -> DataFrame:
    """Return the frame with binary columns as text and moments in milliseconds as timestamps.

    Bytes that are not UTF-8 text are written `0x` and hexadecimal; null stays null, empty stays
    empty (F620). A moment outside of the years 1 to 9999 is null (F621). Columns keep their names,
    but for `_ms` at the end of those that become timestamps, unless that name is taken. Nested
    columns stay as they are.
    """
    names = frame.columns
    return frame.select(*(_readable(frame[f.name], f, names) for f in frame.schema.fields))


def _readable(column: Column, field: StructField, names: list[str]) -> Column:
    if isinstance(field.dataType, BinaryType):
        return _text(column).alias(field.name, metadata=field.metadata)
    if isinstance(field.dataType, LongType) and _is_moment(field.name):
        short = field.name.removesuffix("_ms")
        name = field.name if short in names else short
        return timestamp_column(column).alias(name, metadata=field.metadata)
    return column


def _is_moment(name: str) -> bool:
    return name.endswith("_ms") and name not in DURATIONS_MS


def _text(column: Column) -> Column:
    text = column.cast("string")
    is_text = F.is_valid_utf8(text) & ~text.rlike(_UNPRINTABLE)
    return F.when(is_text, text).otherwise(F.concat(F.lit("0x"), F.hex(column)))


def timestamp_column(milliseconds: Column) -> Column:
    """Return milliseconds since 1970 as a timestamp; null outside of the years 1 to 9999 (F621)."""
    return F.when(milliseconds.between(_FIRST_MS, _LAST_MS), F.timestamp_millis(milliseconds))
