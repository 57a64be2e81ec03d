"""Writes a new log directory with all that is sound in a damaged one; a broker opens it.

Tables: salvage, a row per partition; lost_ranges, a row per range of bytes or offsets that is not
in the new directory.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from kafkalog.analysis.partitions.salvage import lost_ranges
from kafkalog.inspection.partitions.salvaged_logs import SalvageTotals
from kafkalog.spark.jobs.job import (
    ExitCode,
    announced_logs,
    exit_code,
    job_parser,
    run_job,
    tell_absent,
)
from kafkalog.spark.jobs.salvage import salvage_in_tasks
from kafkalog.spark.jobs.salvage_job import add_salvage_arguments, salvage_settings
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import refuse_other_inputs, replace_rows, spark_schema
from kafkalog.storage.files.output_files import refuse_existing_directory
from kafkalog.storage.log_dir.read_directories import refuse_inside
from kafkalog.storage.writing.salvaged_log_dir import left_out_lines, salvageable

_SHOWN = ("topic", "partition", "kind", "length", "first_offset", "last_offset", "detail")


def run(args: Namespace) -> ExitCode:
    """Write the new log directory and both tables, and say what is not in it."""
    inputs, found = announced_logs(args)
    refuse_inside("--output", args.output, [args.salvage_to])
    refuse_inside("--salvage-to", args.salvage_to, [*inputs, *(log.path for log in found)])
    refuse_existing_directory("--salvage-to", args.salvage_to)
    logs = salvageable(found)
    settings = salvage_settings(args, logs, time.time_ns() // 1_000_000)
    with job_session("kafkalog salvage", with_delta=args.format == "delta") as spark:
        for table in ("salvage", "lost_ranges"):
            refuse_other_inputs(spark, args.output, table, args.format, inputs)
        rows = salvage_in_tasks(spark, logs, args.salvage_to, settings)
        totals = SalvageTotals.of(row.asDict() for row in rows)
        salvaged = spark.createDataFrame(rows, spark_schema("salvage"))
        lost = lost_ranges(salvaged)
        paths = [
            replace_rows(salvaged, args.output, "salvage", args.format, inputs),
            replace_rows(lost, args.output, "lost_ranges", args.format, inputs),
        ]
        if args.show and totals.lost_ranges:
            places = lost.orderBy("topic", "partition", "file", "position")
            places.select(*_SHOWN).show(args.show, truncate=False)
    tell_absent(inputs, found)
    for line in left_out_lines(found):
        print(line)
    print(totals.words(args.salvage_to))
    print("tables:", *paths)
    return exit_code(args, has_findings=totals.has_findings)


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job_parser(
        "salvage",
        "Write a new log directory with all that is sound in a damaged one.",
        "/mnt/damaged/kafka-logs --salvage-to /mnt/new/kafka-logs --output /tmp/salvaged",
    )
    add_salvage_arguments(parser)
    return run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
