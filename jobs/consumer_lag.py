"""Compute the lag of every consumer group from the offsets topic and the logs, now or in the past.

Tables: consumer_lag, a row per group, topic and partition; with --why group_reasons, why each group
does not read on there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from kafkalog.coordination.groups.lag_question import LagQuestion
from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options.lag_options import lag_options

_SHOWN = (
    "group_id string, topic string, partition int, committed_offset bigint, high_watermark bigint, "
    "lag bigint, made_of string, time_lag string, status string, group_state string, "
    "stored_in string, client string, client_host string"
)


@job_command("consumer-lag", "/var/lib/kafka/data --output-dir /tmp/lag")
@lag_options
@click.option(
    "--why",
    is_flag=True,
    help="Write table group_reasons too: why each group does not read on, since when, and what to "
    "do.",
)
def main(
    job: JobSettings, question: LagQuestion, zookeeper: Sequence[str], chroot: str | None, why: bool
) -> ExitCode:
    """Show the lag of every consumer group in records and in time, what it is made of, who has the
    partition, and which commits are stale. Findings are records that groups lost to deletion or to
    damage, and lag above --max-lag."""
    from kafkalog.inspection.lag.lag_table import TABLE
    from kafkalog.questions.groups.group_parts import cluster_of_groups
    from kafkalog.questions.groups.lag import ConsumerLag
    from kafkalog.questions.zookeeper.zookeeper_cluster import readable_zookeeper
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run, with_internal
    from kafkalog.spark.tables import local_rows

    old = readable_zookeeper(zookeeper, job.mode, chroot, output_dir=job.output_dir)
    inputs, logs = announced_logs(job, chosen=with_internal(question.chosen.is_topic))
    about = [*inputs, *(old.inputs if old else ())]
    cluster = cluster_of_groups(old, job.paths, logs)
    with job_run(job, inputs, logs, about=about) as run:
        lag = ConsumerLag(run.views, question, cluster, show=job.show)
        run.save({TABLE: lag.rows})
        lines = lag.words()
        if job.show and lag.totals.partitions:
            shown = [tuple(row.values()) for row in lag.most_behind]
            local_rows(run.spark, shown, _SHOWN).show(job.show, truncate=False)
        if why:
            from kafkalog.questions.why import TABLE as REASONS
            from kafkalog.questions.why import group_reasons

            run.save({REASONS: group_reasons(run.views, question)})
    return run.ended([*lines, lag.verdict], has_findings=bool(lag.findings))


if __name__ == "__main__":
    sys.exit(main())
