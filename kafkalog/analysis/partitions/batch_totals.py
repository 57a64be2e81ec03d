"""Traffic, compression and sizes of batches, from one pass over view `batches`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.partitions.storage_totals import shown_topic

# Calendars of plots end before the year 10000: a time that is later is none.
_NO_YEAR_MS = 253_402_300_800_000
# What `batch_totals` reads.
BATCH_COLUMNS = (
    *("topic", "file", "size", "uncompressed_size", "records"),
    *("compression", "max_timestamp_ms", "is_control"),
)
_SUMS = ("batches", "records", "bytes", "measured_bytes", "uncompressed_bytes")
_DIRECTORY = "(?s)^(.*)/[^/]*$"


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Equal stretches of time from `begin_ms` on, of `every_ms` each."""

    begin_ms: int
    every_ms: int
    stretches: int


def time_spread(batches: DataFrame) -> DataFrame:
    """Return one row about the largest timestamps of batches that have one before the year 10000:
    least_ms, greatest_ms, and low_ms and high_ms, between which all but about a fiftieth lie."""
    time = F.col("max_timestamp_ms")
    quantiles = F.percentile_approx(time, [0.01, 0.99], 1000)
    return (
        batches.where((time >= 0) & (time < _NO_YEAR_MS))
        .agg(F.min(time).alias("least_ms"), F.max(time).alias("greatest_ms"), quantiles.alias("q"))
        .select("least_ms", "greatest_ms", F.col("q")[0].alias("low_ms"), F.col("q")[1])
        .toDF("least_ms", "greatest_ms", "low_ms", "high_ms")
    )


def batch_totals(
    batches: DataFrame, longest: DataFrame, topics: Sequence[str | None], grid: TimeGrid
) -> DataFrame:
    """Return a row per shown topic, codec, stretch of time and power of two of the size:
    shown_topic, null for topics that are not among `topics`; compression; stretch, -1 for times
    before the grid and without one, `grid.stretches` for later ones; size_from; batches, bytes, and
    the records of each partition's longest copy; uncompressed_bytes and the measured_bytes that
    they were in the file; is_control, whether they are control batches."""
    is_measured = F.col("uncompressed_size").isNotNull()
    copies = longest.select("directory", F.lit(True).alias("is_longest"))
    directory = F.regexp_extract("file", _DIRECTORY, 1)
    of_copies = batches.withColumn("directory", directory).join(
        F.broadcast(copies), "directory", "left"
    )
    once = F.when(F.col("is_longest"), F.col("records"))
    return of_copies.groupBy(
        shown_topic(topics),
        F.coalesce("is_control", F.lit(False)).alias("is_control"),
        "compression",
        _stretch(grid).alias("stretch"),
        F.pow(F.lit(2), F.floor(F.log2(F.greatest("size", F.lit(1)))))
        .cast("long")
        .alias("size_from"),
    ).agg(
        F.count("*").alias("batches"),
        F.coalesce(F.sum(once), F.lit(0)).alias("records"),
        F.sum("size").alias("bytes"),
        F.sum(F.when(is_measured, F.col("size")).otherwise(0)).alias("measured_bytes"),
        F.coalesce(F.sum("uncompressed_size"), F.lit(0)).alias("uncompressed_bytes"),
    )


def _stretch(grid: TimeGrid) -> Column:
    time = F.col("max_timestamp_ms")
    end_ms = grid.begin_ms + grid.every_ms * grid.stretches
    inside = F.floor((time - grid.begin_ms) / grid.every_ms).cast("int")
    return (
        F.when(time.isNull() | (time < grid.begin_ms), -1)
        .when(time >= end_ms, grid.stretches)
        .otherwise(inside)
    )


def summed(totals: DataFrame, *keys: str) -> DataFrame:
    """Return rows of batch_totals with fewer keys."""
    return totals.groupBy(*keys).agg(*(F.sum(name).alias(name) for name in _SUMS)).orderBy(*keys)
