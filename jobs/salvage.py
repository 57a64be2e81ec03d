"""Writes a new log directory with all that is sound in a damaged one; a broker opens it.

Tables: salvage, a row per partition; lost_ranges, a row per range of bytes or offsets that is not
in the new directory.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from pyspark.sql import Row

from kafkalog.analysis.salvage import lost_ranges, salvage_totals
from kafkalog.columns.salvage import SalvageSettings
from kafkalog.spark.job import ExitCode, announced_inputs, counted, job_parser, run_job
from kafkalog.spark.salvage import finish_log_dir, salvage, salvageable
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import refuse_other_inputs, replace_rows, table_schema
from kafkalog.storage.log_dir import find_partitions

_SHOWN = ("topic", "partition", "kind", "length", "first_offset", "last_offset", "detail")


def verdict(totals: Row, target: str) -> str:
    """One line: what is in the new directory, and what is not."""
    kept = (
        f"{counted(totals.partitions, 'partition')} with {counted(totals.batches, 'batch')}, "
        f"{counted(totals.records, 'record')}, {counted(totals.kept_bytes, 'byte')} in {target}"
    )
    lost = "nothing was lost"
    if totals.lost_ranges:
        lost = (
            f"LOST: {counted(totals.lost_bytes, 'byte')} in {counted(totals.lost_ranges, 'range')}"
        )
    if totals.start_errors:
        lost += f"; a broker would stumble over {counted(totals.start_errors, 'partition')}"
    if totals.without_topic_id:
        lost += (
            f"; {counted(totals.without_topic_id, 'partition')} had no topic id "
            "(partition.metadata): a broker with KRaft sets them aside as stray"
        )
    return f"{kept}; {lost}"


def run(args: Namespace) -> ExitCode:
    """Write the new log directory and both tables, and say what is not in it."""
    inputs = announced_inputs(args)
    logs = salvageable(find_partitions(inputs, strict=args.mode == "FAILFAST"))
    settings = SalvageSettings(time.time_ns() // 1_000_000, args.index_interval_bytes)
    with job_session("kafkalog salvage", with_delta=args.format == "delta") as spark:
        for table in ("salvage", "lost_ranges"):
            refuse_other_inputs(spark, args.output, table, args.format, inputs)
        rows = salvage(spark, logs, args.salvage_to, settings).collect()
        salvaged = spark.createDataFrame(rows, table_schema("salvage"))
        ends = {(row.topic, row.partition): row.log_end_offset for row in rows}
        finish_log_dir(logs[0].log_dir.path, args.salvage_to, ends)
        (totals,) = salvage_totals(salvaged).collect()
        lost = lost_ranges(salvaged)
        paths = [
            replace_rows(salvaged, args.output, "salvage", args.format, inputs),
            replace_rows(lost, args.output, "lost_ranges", args.format, inputs),
        ]
        if args.show and totals.lost_ranges:
            places = lost.orderBy("topic", "partition", "file", "position")
            places.select(*_SHOWN).show(args.show, truncate=False)
    print(verdict(totals, args.salvage_to))
    print("tables:", *paths)
    has_findings = totals.lost_ranges or totals.start_errors
    return ExitCode.FINDINGS if args.fail_on_findings and has_findings else ExitCode.DONE


def parser() -> ArgumentParser:
    """The job's arguments."""
    arguments = job_parser(
        "salvage",
        "Write a new log directory with all that is sound in a damaged one.",
        "/mnt/damaged/kafka-logs --salvage-to /mnt/new/kafka-logs --output /tmp/salvaged",
    )
    arguments.add_argument(
        "--salvage-to", metavar="NEW_LOG_DIR", required=True,
        help="the log directory to write; it must not exist",
    )  # fmt: skip
    arguments.add_argument(
        "--index-interval-bytes", metavar="N", type=int, default=4096,
        help="index.interval.bytes of the new indexes (default: 4096)",
    )  # fmt: skip
    return arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    return run_job(run, parser().parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
