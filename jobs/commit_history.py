"""Show how the commits of groups moved, and which moves left records unread.

Table: commit_history, a row per commit of a group for a partition, and one about what is after the
last.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from kafkalog.coordination.groups.lag_question import ChosenNames, LagQuestion
from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.lag_options import read_committed_option

_SHOWN = (
    *("group_id", "topic", "partition", "event", "at_ms", "committed_offset", "jump"),
    *("records_between", "deleted_between", "members", "finding"),
)


@job_command(
    "commit-history", "/var/lib/kafka/data --group billing --output-dir /tmp/commit-history"
)
@shared.group_option
@shared.as_of_option("Show commits up to this time")
@read_committed_option("The isolation level of the consumers.")
def main(
    job: JobSettings, groups: Sequence[str], as_of: int | None, read_committed: bool
) -> ExitCode:
    """Show how the commits of groups moved: what they jumped over, what was deleted before they
    came to it, where they went back, and two consumers that commit by turns. Without --group that
    is all groups. Findings are such moves."""
    from kafkalog.questions.positions.commit_history import TABLE, commit_history
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run

    inputs, logs = announced_logs(job)
    chosen = ChosenNames(frozenset(groups))
    question = LagQuestion(time.time_ns() // 1_000_000, as_of, read_committed, chosen=chosen)
    with job_run(job, inputs, logs, compiles_less=False) as run:
        history = commit_history(run.views, question)
        run.save({TABLE: history.rows}, {TABLE: _SHOWN})
    return run.ended(history.words(), has_findings=history.has_findings)


if __name__ == "__main__":
    sys.exit(main())
