"""Copy the records of topics into a table, each exactly once, from where the last run ended.

Tables: ingested_records, a row per record; ingest_manifest, which offsets each run read.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.spark.jobs.tables.ingest_request import OPTIONS, IngestRequest, ingest_options
from kafkalog.spark.jobs.tables.state_request import named_as_options
from kafkalog.views.options.options import Mode
from kafkalog.words import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafkalog.views.planning.ingest_positions import IngestRun

_EXAMPLE = """\
/var/lib/kafka/data --output-dir /lake/kafka \\
    --starting-offsets-out /lake/kafka/starting_offsets.json
  python jobs/ingest_topics.py /var/lib/kafka/data --output-dir /lake/kafka \\
    --from-time 2026-11-01T00:00:00Z --until-time 2026-11-02T00:00:00Z
The first adds what is new since its last run; the second writes the records of a day once more."""


# Rows and offsets are written in one commit of Delta.
@job_command("ingest-topics", _EXAMPLE, mode=Mode.FAILFAST, formats=("delta",))
@ingest_options
def main(job: JobSettings, request: IngestRequest) -> ExitCode:
    """Write the records of topics to a Delta table, each exactly once; a run adds what is new.
    Findings are records that were deleted before they were read, and logs other than those that
    were read before."""
    from kafkalog.spark.jobs.inputs import announced_inputs
    from kafkalog.spark.jobs.tables.ingest_manifest import show_run, write_manifest
    from kafkalog.spark.jobs.tables.ingest_table import append_records, planned_ingest_run
    from kafkalog.spark.jobs.tables.state_sources import found_sources
    from kafkalog.spark.session import job_session
    from kafkalog.storage.files.output_files import given_file
    from kafkalog.views.planning.ingest_positions import ingest_starting_offsets

    options = request.options(job, announced_inputs(job))
    with named_as_options(OPTIONS):
        sources = found_sources(options)
    with job_session("kafkalog ingest-topics", with_delta=True) as spark:
        planned = planned_ingest_run(spark, job.output_dir, request, sources)
        paths = [append_records(build(spark, job, planned), job.output_dir, planned)]
        if planned.has_work:
            paths.append(write_manifest(spark, job.output_dir, planned.positions))
            show_run(spark, job, planned)
        if request.starting_offsets_out:
            offsets = ingest_starting_offsets(planned.positions, planned.ranges)
            with given_file("--starting-offsets-out", request.starting_offsets_out) as file:
                file.write(offsets.encode())
    print(*verdict(planned), f"tables: {' '.join(paths)}", sep="\n")
    return job.exit_code(has_findings=bool(planned.findings))


def build(spark: SparkSession, job: JobSettings, planned: IngestRun) -> DataFrame:
    """Return the records of the offsets to read, which may be none."""
    from kafkalog.analysis import ingest
    from kafkalog.spark.jobs.tables.ingest_manifest import ranges_frame
    from kafkalog.spark.jobs.tables.state_sources import state_records

    isolation_level = planned.positions.isolation_level
    records = state_records(spark, job, isolation_level, planned, ingest.INGESTED_COLUMNS)
    ranges = ranges_frame(spark, planned.written, planned.positions)
    return ingest.ingested_records(records, ranges, planned.positions.run)


def verdict(planned: IngestRun) -> list[str]:
    """Say how much was new, and what keeps partitions from being complete."""
    offsets = sum(each.until_offset - each.from_offset for each in planned.written)
    partitions = counted(len(planned.written), "partition")
    new = f"read {counted(offsets, 'offset')} of {partitions}" if offsets else "nothing is new"
    findings = [
        f"{(each.finding or '').upper()}: {each.topic}-{each.partition}: {each.detail}"
        for each in planned.findings
    ]
    return [new, *findings]


if __name__ == "__main__":
    sys.exit(main())
