"""Show which segments a broker's retention would delete, now or at a given time, and why.

Table: retention_plan, a row per segment.
"""

from __future__ import annotations

import sys
import time
from dataclasses import astuple

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources

_TOTALS = (
    "topic string, segments bigint, segments_going bigint, bytes bigint, bytes_freed bigint, "
    "bytes_within_day bigint, bytes_within_week bigint, "
    "bytes_unknown bigint, blocked_partitions bigint, "
    "blocked_by_ms bigint, padded_segments bigint, missing_settings string"
)


@job_command(
    "plan-retention",
    "/var/lib/kafka/data --output-dir /tmp/plan --server-properties server.properties",
)
@shared.config_options
@shared.set_option
@shared.as_of_option("Plan as of this time instead of now")
def main(
    job: JobSettings, configs: ConfigSources, settings: dict[str, str], as_of: int | None
) -> ExitCode:
    """Show which segments retention would delete and why. Findings are topics whose retention is
    blocked by a timestamp in the future, and segments that a broker takes to be of 1970 because
    their time index ends with zeros."""
    from kafkalog.questions.retention import TABLE, RetentionRequest, retention
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run
    from kafkalog.spark.tables import local_rows

    configs.given()
    inputs, logs = announced_logs(job)
    config = configs.with_settings(settings, logs).options()
    request = RetentionRequest(time.time_ns() // 1_000_000 if as_of is None else as_of, config)
    with job_run(job, inputs, logs) as run:
        plan = retention(run.views, request)
        run.save({TABLE: plan.rows})
        if job.show:
            shown = ((*astuple(each)[:-1], each.missing) for each in plan.most_first())
            local_rows(run.spark, shown, _TOTALS).show(job.show, truncate=False)
    return run.ended(plan.words(), has_findings=plan.has_findings)


if __name__ == "__main__":
    sys.exit(main())
