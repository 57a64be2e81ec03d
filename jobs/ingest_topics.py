"""The records of topics in a table that goes on where the last run ended, each exactly once.

Tables: ingested_records, a row per record; ingest_manifest, which offsets each run read.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.analysis import ingest
from kafkalog.spark.jobs.job import (
    ExitCode,
    announced_inputs,
    counted,
    exit_code,
    job_parser,
    run_job,
)
from kafkalog.spark.jobs.tables.ingest_arguments import (
    EXAMPLE,
    ingest_sources,
    with_ingest_arguments,
)
from kafkalog.spark.jobs.tables.ingest_manifest import ranges_frame, show_run, write_manifest
from kafkalog.spark.jobs.tables.ingest_table import append_records, planned_ingest_run
from kafkalog.spark.jobs.tables.state_sources import state_records
from kafkalog.spark.session import job_session
from kafkalog.storage.files.output_files import given_file
from kafkalog.views.options.options import Mode
from kafkalog.views.planning.ingest_positions import IngestRun, ingest_starting_offsets


def build(spark: SparkSession, args: Namespace, planned: IngestRun) -> DataFrame:
    """The records of the offsets to read, of which there may be none."""
    records = state_records(spark, args, planned, ingest.INGESTED_COLUMNS)
    ranges = ranges_frame(spark, planned.written, planned.positions)
    return ingest.ingested_records(records, ranges, planned.positions.run)


def verdict(planned: IngestRun) -> list[str]:
    """How much was new, and what keeps partitions from being whole."""
    offsets = sum(each.until_offset - each.from_offset for each in planned.written)
    partitions = counted(len(planned.written), "partition")
    new = f"read {counted(offsets, 'offset')} of {partitions}" if offsets else "nothing is new"
    findings = [
        f"{(each.finding or '').upper()}: {each.topic}-{each.partition}: {each.detail}"
        for each in planned.findings
    ]
    return [new, *findings]


def run(args: Namespace) -> ExitCode:
    """Read what is new, add it to the table, and say how much it was."""
    sources = ingest_sources(args, announced_inputs(args))
    with job_session("kafkalog ingest_topics", with_delta=True) as spark:
        planned = planned_ingest_run(spark, args, sources)
        paths = [append_records(build(spark, args, planned), args, planned)]
        if planned.has_work:
            paths.append(write_manifest(spark, args.output, planned.positions))
            show_run(spark, args, planned)
        if args.starting_offsets_out:
            offsets = ingest_starting_offsets(planned.positions, planned.ranges)
            with given_file("--starting-offsets-out", args.starting_offsets_out) as file:
                file.write(offsets.encode())
    print(*verdict(planned), f"tables: {' '.join(paths)}", sep="\n")
    return exit_code(args, has_findings=bool(planned.findings))


def parser() -> ArgumentParser:
    """The job's arguments."""
    arguments = job_parser(
        "ingest_topics",
        "The records of topics in a Delta table, each exactly once; a run adds what is new.\n"
        "Findings are records that were deleted before they were read, and logs that are not\n"
        "those that were read before.",
        EXAMPLE,
        mode=Mode.FAILFAST,
        # Rows and offsets are written in one of its commits.
        formats=("delta",),
    )
    return with_ingest_arguments(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    return run_job(run, parser().parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
