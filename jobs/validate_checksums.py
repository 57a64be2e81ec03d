"""Which bytes of a log directory are sound: every batch of every segment is checked.

Tables: checksum_report, a row per segment; faults, a row per damaged batch or byte range.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from kafkalog.analysis.partitions.checksums import checksum_report, checksum_totals, faults
from kafkalog.columns.batches.byte_ranges import CheckTotals
from kafkalog.errors import KafkaLogError, LogDirError
from kafkalog.spark.jobs.job import ExitCode, announced_logs, job_parser, run_job, tell_absent
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows
from kafkalog.views.options.options import Mode
from kafkalog.views.planning.lost_logs import lost_log_reads

_SHOWN = ("file", "position", "length", "severity", "kind", "detail")


def build(spark: SparkSession, log_dirs: Sequence[str], mode: str) -> DataFrame:
    """The account of all bytes under the log directories, internal topics included."""
    reader = spark.read.format("kafkalog").option("view", "byte_ranges").option("mode", mode)
    return reader.option("subscribe", "*").load(list(log_dirs))


def run(args: Namespace) -> ExitCode:
    """Check, write both tables, and say what was found."""
    inputs, logs = announced_logs(args)
    tell_absent(inputs, logs)
    if not any(log.segments for log in logs) and not lost_log_reads(logs):
        raise LogDirError(f"{', '.join(inputs)}: no segment there to check")
    with job_session("kafkalog validate_checksums", with_delta=args.format == "delta") as spark:
        ranges = build(spark, inputs, args.mode).persist(StorageLevel.MEMORY_AND_DISK)
        report, found = checksum_report(ranges), faults(ranges)
        (row,) = checksum_totals(report).collect()
        totals = CheckTotals(**row.asDict())
        if args.mode == Mode.FAILFAST.value and totals.faults:
            raise KafkaLogError(f"{totals.words()}; no table is written with --mode FAILFAST")
        paths = [
            replace_rows(report, args.output, "checksum_report", args.format, inputs),
            replace_rows(found, args.output, "faults", args.format, inputs),
        ]
        if args.show and not found.isEmpty():
            places = found.orderBy("topic", "partition", "segment_base_offset", "position")
            places.select(*_SHOWN).show(args.show, truncate=False)
    print(totals.words())
    print("tables:", *paths)
    return ExitCode.FINDINGS if args.fail_on_findings and totals.faults else ExitCode.DONE


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job_parser(
        "validate_checksums",
        "Check every batch of every segment: checksums, framing, offsets, records.",
        "/var/lib/kafka/data --output /tmp/checked",
    )
    return run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
