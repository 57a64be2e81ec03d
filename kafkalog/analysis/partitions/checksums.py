"""Tables of the checksum job, from view `byte_ranges`."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_SEGMENT = (
    "cluster_id",
    "broker_id",
    "input_path",
    "topic",
    "partition",
    "file",
    "segment_base_offset",
    "is_last_segment",
)


def checksum_report(byte_ranges: DataFrame) -> DataFrame:
    """Return a row per segment, and per log that has lost all of its own:
    schemas/tables/checksum_report.json."""
    is_error = F.col("severity") == "error"
    is_sound = (F.col("verdict") == "valid") & (F.col("batches") > 0)
    first = F.min(
        F.when(
            is_error,
            F.struct(
                "position", "kind", F.coalesce("base_offset", "expected_offset").alias("offset")
            ),
        )
    )
    report = byte_ranges.groupBy(*_SEGMENT).agg(
        F.sum("batches").alias("batches"),
        F.sum("records").alias("records"),
        F.min(F.when(is_sound, F.col("base_offset"))).alias("base_offset"),
        F.max(F.when(is_sound, F.col("last_offset"))).alias("last_offset"),
        F.max("file_size").alias("bytes"),
        _bytes_of("valid"),
        _bytes_of("faulty"),
        _bytes_of("trailing"),
        F.count_if(is_error).alias("faults"),
        F.count_if(F.col("severity") == "warning").alias("warnings"),
        F.count_if(F.col("severity") == "information").alias("remarks"),
        first.alias("first"),
    )
    verdict = (
        F.when(F.col("faults") > 0, "damaged")
        .when(F.col("warnings") + F.col("remarks") > 0, "remarks")
        .otherwise("sound")
    )
    return report.select(
        *_SEGMENT,
        verdict.alias("verdict"),
        "batches",
        "records",
        "base_offset",
        "last_offset",
        "bytes",
        "valid_bytes",
        "faulty_bytes",
        "trailing_bytes",
        "faults",
        "warnings",
        F.col("first.kind").alias("first_fault"),
        F.col("first.position").alias("first_fault_position"),
        F.col("first.offset").alias("first_fault_offset"),
    )


def _bytes_of(verdict: str) -> Column:
    length = F.when(F.col("verdict") == verdict, F.col("length")).otherwise(0)
    return F.sum(length).alias(f"{verdict}_bytes")


def faults(byte_ranges: DataFrame) -> DataFrame:
    """Return a row per damaged batch or byte range, and per oddity: schemas/tables/faults.json."""
    return byte_ranges.where(F.col("kind").isNotNull()).select(
        "cluster_id",
        "broker_id",
        "input_path",
        "topic",
        "partition",
        "file",
        "segment_base_offset",
        "position",
        "length",
        "kind",
        "severity",
        "detail",
        "verdict",
        "base_offset",
        "last_offset",
        "expected_offset",
        "stored_crc",
        "computed_crc",
    )


def checksum_totals(report: DataFrame) -> DataFrame:
    """Return one row that sums the report up, for the verdict on the terminal."""
    is_segment, is_damaged = F.col("bytes").isNotNull(), F.col("verdict") == "damaged"
    partition = (F.when(is_segment, F.col(name)) for name in ("topic", "partition"))
    return report.agg(
        F.count_if(is_segment).alias("segments"),
        F.count_distinct(*partition).alias("partitions"),
        *(
            F.coalesce(F.sum(name), F.lit(0)).alias(name)
            for name in ("bytes", "batches", "records", "faulty_bytes", "trailing_bytes")
        ),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("faults", "warnings")),
        F.count_if(is_damaged & is_segment).alias("damaged_segments"),
        F.count_if(is_damaged & ~is_segment).alias("lost_logs"),
    )
