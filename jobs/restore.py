"""Write a cluster that boots, as of one moment, from copies of brokers' disks.

Partitions are written in parallel, into a directory that all executors share.
"""

from __future__ import annotations

import sys
import time

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.restore_options import RestoreOptions, restore_options

_MEANING = """\
PATH is a copy of a log directory of a node, the folder of tiered storage, or a glob of these."""


@job_command(
    "restore",
    "/snap/b1 /snap/b2 /snap/b3 --to /mnt/shared/restored",
    mode=None,
    meaning=_MEANING,
    writes_tables=False,
)
@shared.new_log_dir_option
@restore_options
def main(job: JobSettings, target: str, given: RestoreOptions) -> ExitCode:
    """Write a cluster that boots, as of one moment, from copies of brokers' disks, partitions in
    parallel; the new directory is on a file system that all executors share. Findings are what is
    not exact or not whole."""
    from kafkalog.questions.restore.runs import Wanted, refuse_target, written
    from kafkalog.questions.restore.sources import sources_of
    from kafkalog.spark.jobs.spark_views import SparkViews
    from kafkalog.spark.session import job_session

    wanted = Wanted.of(given, target)
    sources = sources_of(job.paths)
    refuse_target(target, sources)
    with job_session("kafkalog restore", with_delta=False, compiles_less=True) as spark:
        views = SparkViews(spark, sources.log_dirs, [])
        report = written(views, sources, wanted, time.time_ns() // 1_000_000, target)
    print(*report.lines, sep="\n")
    return job.exit_code(has_findings=not report.is_exact)


if __name__ == "__main__":
    sys.exit(main())
