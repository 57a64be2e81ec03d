"""Check whether cleaned logs keep the cleaner's guarantees, and what a cleaning would free.

Tables: compaction_report, a row per compacted partition; compaction_findings, a row per finding.
"""

from __future__ import annotations

import sys
import time

import click

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources
from kafkalog.views.options.parameter_types import GivenPath

_SHOWN = ("topic", "partition", "severity", "kind", "offset", "other_offset", "key", "detail")
_DUE = ("topic", "partition", "dirty_ratio", "is_due", "why_not")


@job_command(
    "verify-compaction",
    "/var/lib/kafka/data --output-dir /tmp/compaction --before /mnt/copy/kafka-logs",
)
@click.option(
    "--before", metavar="LOG_DIR", type=GivenPath(), help="An earlier copy, to find lost keys."
)
@shared.config_options
@shared.as_of_option("Check as of this time instead of now")
def main(
    job: JobSettings, before: str | None, configs: ConfigSources, as_of: int | None
) -> ExitCode:
    """Show whether cleaned logs keep the cleaner's promises, and what a cleaning would free.
    Findings are keys and deletes for which it has not kept them."""
    from kafkalog.inspection.metadata.current_topics import find_logs
    from kafkalog.questions.compaction import FINDINGS, REPORT, CompactionRequest, compaction
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run

    config = configs.options()
    inputs, logs = announced_logs(job)
    as_of = time.time_ns() // 1_000_000 if as_of is None else as_of
    if before is not None:
        find_logs([before], strict=job.mode == "FAILFAST")
    settings = CompactionRequest(as_of, config, before)
    with job_run(job, inputs, logs) as run:
        found = compaction(run.views, settings)
        tables = {REPORT: found.report, FINDINGS: found.findings}
        run.save(tables, {FINDINGS: _SHOWN, REPORT: _DUE})
    return run.ended([found.words()], has_findings=found.has_findings)


if __name__ == "__main__":
    sys.exit(main())
