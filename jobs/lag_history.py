"""Show lag and status of consumer groups over time, from the offsets topic and the logs.

Tables: lag_history, a row per group, topic, partition and commit, or moment; group_generations, a
row per generation of a group.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafkalog.coordination.groups.lag_question import LagHistoryQuestion
from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options.lag_options import history_options

# The fields of GroupStatus.
_STATUSES = (
    "cluster_id string, group_id string, rank bigint, status string, burrow_status string, "
    "partitions bigint, errors bigint, readable_records bigint, behind_since_ms bigint, "
    "last_commit_ms bigint, topic string, partition int, reason string"
)
_SHOWN = (
    *("group_id", "status", "burrow_status", "partitions", "errors", "readable_records"),
    *("behind_since_ms", "last_commit_ms", "topic", "partition", "reason"),
)


@job_command("lag-history", "/var/lib/kafka/data --output-dir /tmp/history --every 5m")
@history_options
def main(
    job: JobSettings, question: LagHistoryQuestion, zookeeper: Sequence[str], chroot: str | None
) -> ExitCode:
    """Show the lag and the status of consumer groups at every commit, or at regular moments, as far
    back as the offsets topic goes, and the generations of groups. Findings are groups that have a
    partition with an error at the end, and damage that hides commits. For an earlier copy give its
    time as --until-time: a group that stopped with it is not an error."""
    from kafkalog.inspection.lag.lag_history import TABLE
    from kafkalog.questions.groups.group_parts import cluster_of_groups
    from kafkalog.questions.groups.history_summary import GENERATIONS
    from kafkalog.questions.groups.lag_history import LagHistory
    from kafkalog.questions.zookeeper.zookeeper_cluster import readable_zookeeper
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run, with_internal
    from kafkalog.spark.readable import readable
    from kafkalog.spark.tables import local_rows

    old = readable_zookeeper(zookeeper, job.mode, chroot, output_dir=job.output_dir)
    inputs, logs = announced_logs(job, chosen=with_internal(question.chosen.is_topic))
    about = [*inputs, *(old.inputs if old else ())]
    cluster = cluster_of_groups(old, job.paths, logs)
    with job_run(job, inputs, logs, about=about) as run:
        history = LagHistory(run.views, question, cluster)
        run.save({TABLE: history.rows})
        # They are known when the rows are written.
        run.save({GENERATIONS: history.rows.generations()})
        lines = history.words()
        if job.show and history.statuses:
            first = local_rows(run.spark, history.statuses[: job.show + 1], _STATUSES)
            readable(first.select(*_SHOWN)).show(job.show, truncate=False)
    return run.ended(lines, has_findings=history.has_findings)


if __name__ == "__main__":
    sys.exit(main())
