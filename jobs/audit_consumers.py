"""Compare what old consumers have in ZooKeeper with what they are assigned; show who owned what.

Owners, sessions, offsets, deletions of topics under way, broker ids and cluster ids. The job only
reports: it never changes or deletes anything.

Tables: partition_ownership, consumer_findings, ownership_history.
"""

from __future__ import annotations

import sys
import time

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.options import Mode
from kafkalog.views.options.zookeeper.migration_options import audited_log_dir_option

_SHOWN = ("finding", "group_id", "topic", "partition", "detail")


@job_command(
    "audit-consumers",
    "/var/lib/zookeeper --log-dir /var/lib/kafka/data --output-dir /tmp/audit",
    meaning=shared.ZOOKEEPER_PATHS_MEANING,
)
@audited_log_dir_option
def main(job: JobSettings, log_dirs: tuple[str, ...]) -> ExitCode:
    """Compare who owns partitions with what the registered consumers are assigned, show the history
    of ownership, and what is wrong with sessions, offsets, deletions of topics under way, broker
    ids and cluster ids. The job changes and deletes nothing."""
    from kafkalog.inspection.zookeeper.consumer_audit_rows import CONSUMER_FINDINGS
    from kafkalog.questions.zookeeper.audit import AuditSettings, audit, compared_log_dirs
    from kafkalog.spark.jobs.tables.runs import announced_data_dirs, job_run

    data_dirs = announced_data_dirs(job)
    compared = compared_log_dirs(log_dirs, job.output_dir)
    inputs = [data_dir.path for data_dir in data_dirs]
    now_ms = time.time_ns() // 1_000_000
    found = audit(AuditSettings(data_dirs, compared, now_ms, Mode(job.mode)))
    with job_run(job, inputs, compiles_less=False) as run:
        run.save(found.tables, {CONSUMER_FINDINGS: _SHOWN})
    return run.ended(found.words(), has_findings=found.has_findings)


if __name__ == "__main__":
    sys.exit(main())
