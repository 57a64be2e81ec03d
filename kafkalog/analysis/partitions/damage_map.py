"""Where in a partition damage lies, from view `byte_ranges`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

_LOG = ("cluster_id", "broker_id", "input_path", "topic", "partition")
_FILE = ("file", "segment_base_offset")


def damage_map(byte_ranges: DataFrame, cells: int) -> DataFrame:
    """Return a row per partition and broker: bytes; segments; faulty_bytes and trailing_bytes;
    ranges, those with findings; and marks, the (cell, kind, severity, ranges) that there is
    something in, where the partition's segments, one after the other, are divided into `cells`
    equal parts. A range marks each cell that it touches: none is too small to be seen. Kinds are
    those of docs/format.md, and `trailing`."""
    placed = _placed(byte_ranges)
    last = F.lit(cells - 1)
    ratio = cells / F.greatest("bytes", F.lit(1))
    begin = F.least(F.floor(F.col("begin") * ratio), last)
    end = F.least(
        F.floor((F.col("begin") + F.greatest(F.col("length") - 1, F.lit(0))) * ratio), last
    )
    marks = (
        placed.where(_has_findings())
        .select(
            *_LOG,
            _shown_kind().alias("kind"),
            F.coalesce("severity", F.lit("information")).alias("severity"),
            F.explode(F.sequence(begin.cast("int"), end.cast("int"))).alias("cell"),
        )
        .groupBy(*_LOG, "cell", "kind", "severity")
        .agg(F.count("*").alias("ranges"))
        .groupBy(*_LOG)
        .agg(F.sort_array(F.collect_list(F.struct("cell", "kind", "severity", "ranges"))))
        .toDF(*_LOG, "marks")
    )
    totals = placed.groupBy(*_LOG).agg(
        F.max("bytes").alias("bytes"),
        F.count_distinct(F.when(F.col("file_size").isNotNull(), F.col("file"))).alias("segments"),
        *(_bytes_of(verdict) for verdict in ("faulty", "trailing")),
        F.count_if(_has_findings()).alias("ranges"),
        F.count_if(F.col("severity") == "error").alias("errors"),
    )
    return _joined(totals, marks, _LOG, "left").orderBy(
        F.desc("errors"), F.desc("ranges"), F.desc("bytes"), "topic", "partition"
    )


def _placed(byte_ranges: DataFrame) -> DataFrame:
    """With where a range begins in its partition, and how many bytes that has."""
    files = byte_ranges.groupBy(*_LOG, *_FILE).agg(
        F.coalesce(F.max("file_size"), F.lit(0)).alias("size")
    )
    of_log = Window.partitionBy(*_LOG).orderBy("segment_base_offset", "file")
    before = of_log.rowsBetween(Window.unboundedPreceding, -1)
    starts = files.select(
        *_LOG,
        *_FILE,
        F.coalesce(F.sum("size").over(before), F.lit(0)).alias("start"),
        F.sum("size").over(Window.partitionBy(*_LOG)).alias("bytes"),
    )
    placed = _joined(byte_ranges, starts, (*_LOG, *_FILE), "inner")
    return placed.withColumn("begin", F.col("start") + F.col("position"))


def _joined(rows: DataFrame, more: DataFrame, keys: Sequence[str], how: str) -> DataFrame:
    """With the columns that `more` has of the same keys, null being equal to null. Aliases, for
    both come from the same rows: Spark would compare a column with itself."""
    same = [F.col(f"rows.{key}").eqNullSafe(F.col(f"more.{key}")) for key in keys]
    added = [F.col(f"more.{name}") for name in more.columns if name not in keys]
    found = rows.alias("rows").join(more.alias("more"), reduce(and_, same), how)
    return found.select("rows.*", *added)


def _has_findings() -> Column:
    """Return whether there is anything to say of a range."""
    return F.col("kind").isNotNull() | (F.col("verdict") != "valid")


def _shown_kind() -> Column:
    """Return a tail that a broker was writing or has allocated is not damage."""
    is_tail = (F.col("verdict") == "trailing") & (
        F.coalesce(F.col("severity"), F.lit("")) != "error"
    )
    return F.when(is_tail, "trailing").otherwise(F.coalesce("kind", "verdict"))


def _bytes_of(verdict: str) -> Column:
    length = F.when(F.col("verdict") == verdict, F.col("length")).otherwise(0)
    return F.sum(length).alias(f"{verdict}_bytes")


def first_ranges(byte_ranges: DataFrame, count: int) -> DataFrame:
    """Return the first ranges of each partition that there is anything to say of, the worst first,
    `count` of each: the log's columns, file, number, position, length, severity, detail, kind."""
    severity = F.col("severity")
    rank = F.when(severity == "error", 0).when(severity == "warning", 1).otherwise(2)
    order = Window.partitionBy(*_LOG).orderBy(rank, "segment_base_offset", "position")
    return (
        byte_ranges.where(_has_findings())
        .withColumn("number", F.row_number().over(order))
        .where(F.col("number") <= count)
        .select(*_LOG, "file", "number", "position", "length", "severity", "detail", _shown_kind())
        .toDF(*_LOG, "file", "number", "position", "length", "severity", "detail", "kind")
    )
