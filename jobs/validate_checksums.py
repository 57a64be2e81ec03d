"""Which bytes of a log directory are sound: every batch of every segment is checked.

Tables: checksum_report, a row per segment; faults, a row per damaged batch or byte range.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession

from kafkalog.analysis.checksums import checksum_report, checksum_totals, faults
from kafkalog.spark.job import ExitCode, counted, job_parser, run_job
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows
from kafkalog.storage.files import matching_paths

_SHOWN = ("file", "position", "length", "severity", "kind", "detail")


def build(spark: SparkSession, log_dirs: Sequence[str], mode: str) -> DataFrame:
    """The account of all bytes under the log directories, internal topics included."""
    reader = spark.read.format("kafkalog").option("view", "byte_ranges").option("mode", mode)
    return reader.option("subscribe", "*").load(list(log_dirs))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = job_parser(
        "validate_checksums",
        "Check every batch of every segment: checksums, framing, offsets, records.",
        "/var/lib/kafka/data --output /tmp/checked",
    )
    args = parser.parse_args(arguments)

    def run() -> ExitCode:
        inputs = [path for log_dir in args.log_dirs for path in matching_paths(log_dir)]
        spark = job_session("kafkalog validate_checksums", with_delta=args.format == "delta")
        ranges = build(spark, args.log_dirs, args.mode).persist(StorageLevel.MEMORY_AND_DISK)
        report, found = checksum_report(ranges), faults(ranges)
        tables = [
            replace_rows(frame, args.output, name, args.format, inputs)
            for name, frame in (("checksum_report", report), ("faults", found))
        ]
        ordered = found.orderBy("topic", "partition", "segment_base_offset", "position")
        if args.show and not found.isEmpty():
            ordered.select(*_SHOWN).show(args.show, truncate=100)
        (totals,) = checksum_totals(report).collect()
        print(verdict(totals))
        print("tables:", *tables)
        return ExitCode.FINDINGS if args.fail_on_findings and totals.faults else ExitCode.DONE

    return run_job(run)


def verdict(totals: Row) -> str:
    """One line: how much was checked, and whether it is sound."""
    checked = ", ".join(
        (
            f"checked {counted(totals.segments, 'segment')} of "
            f"{counted(totals.partitions, 'partition')}",
            counted(totals.bytes, "byte"),
            counted(totals.batches, "batch"),
            counted(totals.records, "record"),
        )
    )
    if totals.faults:
        return (
            f"DAMAGED: {counted(totals.faults, 'fault')} in "
            f"{counted(totals.damaged_segments, 'segment')}, "
            f"{counted(totals.faulty_bytes, 'byte')} faulty and {totals.trailing_bytes:,} trailing; {checked}"
        )
    remarks = f", {counted(totals.warnings, 'warning')}" if totals.warnings else ""
    tail = f", {counted(totals.trailing_bytes, 'byte')} unfinished" if totals.trailing_bytes else ""
    return f"sound{remarks}{tail}: {checked}"


if __name__ == "__main__":
    sys.exit(main())
