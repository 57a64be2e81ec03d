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
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run

    inputs, logs = announced_logs(job)
    earlier = find_logs([before], strict=job.mode == "FAILFAST")
    with job_run(job, inputs, logs) as run:
        changes = diff(run.views.over([before], earlier), run.views, DiffRequest())
        run.save({TABLE: changes.logs}, {TABLE: _SHOWN})
    return run.ended(changes.words(), has_findings=changes.has_findings)


if __name__ == "__main__":
    sys.exit(main())
