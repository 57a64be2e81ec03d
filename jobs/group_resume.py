"""Show where consumers of each group continue when they start, with each replica as the leader.

Table: group_resume, a row per commit of a group and replica that could lead the partition.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.lag_options import read_committed_option
from kafkalog.views.options.offset_reset import OffsetReset, auto_offset_reset_option

_SHOWN = (
    *("group_id", "topic", "partition", "resumes_at", "reason", "current_offset", "records_again"),
    *("records_skipped", "to_read", "leader", "leads_now"),
)


@job_command("group-resume", "'/mnt/broker*/kafka-logs' --output-dir /tmp/group-resume")
@shared.group_option
@auto_offset_reset_option("That of the consumers")
@read_committed_option("The isolation level of the consumers.")
def main(
    job: JobSettings, groups: Sequence[str], reset: OffsetReset, read_committed: bool
) -> ExitCode:
    """Show where consumers of each group continue that start after the next start of the brokers:
    what they get again, and what they skip. Findings are commits that consumers do not continue
    at."""
    from kafkalog.coordination.groups.lag_question import ChosenNames, LagQuestion
    from kafkalog.questions.groups.group_parts import refuse_without_commits
    from kafkalog.questions.groups.lag import ConsumerLag
    from kafkalog.questions.positions.group_resume import TABLE, ResumeRequest, group_resume
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run

    inputs, logs = announced_logs(job)
    refuse_without_commits(job.paths, logs)
    now_ms, chosen = time.time_ns() // 1_000_000, ChosenNames(frozenset(groups))
    question = LagQuestion(now_ms, read_committed=read_committed, chosen=chosen)
    with job_run(job, inputs, logs) as run:
        commits = ConsumerLag(run.views, question).rows.commits_alone()
        found = group_resume(run.views, commits, ResumeRequest(reset, now_ms, read_committed))
        run.save({TABLE: found.rows}, {TABLE: _SHOWN})
    return run.ended(found.words(), has_findings=found.has_findings)


if __name__ == "__main__":
    sys.exit(main())
