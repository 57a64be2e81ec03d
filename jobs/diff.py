"""Show what changed between two copies of log directories.

Table: log_changes, a row per partition.
"""

from __future__ import annotations

import sys

import click

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options.parameter_types import GivenPath

_SHOWN = ("topic", "partition", "change", "continues_until", "records_added", "records_removed")


@job_command(
    "diff", "/snapshots/tuesday/kafka --before /snapshots/monday/kafka --output-dir /tmp/diff"
)
@click.option(
    "--before", metavar="LOG_DIR", type=GivenPath(), required=True, help="The earlier copy."
)
def main(job: JobSettings, before: str) -> ExitCode:
    """Show what changed between two copies of log directories. Findings are logs that do not
    continue those of the earlier copy, and logs that are missing although their topics were not
    deleted."""
    from kafkalog.inspection.metadata.current_topics import find_logs
    from kafkalog.questions.disks.diff import DiffRequest, diff
    from kafkalog.questions.disks.log_changes import TABLE
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.spark_views import SparkViews
    from kafkalog.spark.jobs.tables.answers import ended, saved
    from kafkalog.spark.session import job_session

    inputs, logs = announced_logs(job)
    earlier = find_logs([before], strict=job.mode == "FAILFAST")
    options = {"mode": job.mode}
    with job_session("kafkalog diff", with_delta=job.is_delta, compiles_less=True) as spark:
        changes = diff(
            SparkViews(spark, [before], earlier, options),
            SparkViews(spark, inputs, logs, options),
            DiffRequest(),
        )
        paths = saved(spark, job, inputs, {TABLE: changes.logs}, {TABLE: _SHOWN})
    return ended(job, changes.words(), paths, has_findings=changes.has_findings)


if __name__ == "__main__":
    sys.exit(main())
