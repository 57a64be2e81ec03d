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
    from kafkalog.spark.jobs.inputs import announced_logs, with_internal
    from kafkalog.spark.jobs.spark_views import SparkViews
    from kafkalog.spark.jobs.tables.answers import ended
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.session import job_session
    from kafkalog.spark.tables import local_rows

    old = readable_zookeeper(zookeeper, job.mode, chroot, output_dir=job.output_dir)
    paths, logs = announced_logs(job, chosen=with_internal(question.chosen.is_topic))
    inputs = [*paths, *(old.inputs if old else ())]
    cluster = cluster_of_groups(old, job.paths, logs)
    with job_session("kafkalog consumer-lag", with_delta=job.is_delta, compiles_less=True) as spark:
        views = SparkViews(spark, paths, logs, {"mode": job.mode})
        lag = ConsumerLag(views, question, cluster, show=job.show)
        written = [replace_rows(job, TABLE, inputs, lag.rows)]
        lines = lag.words()
        if job.show and lag.totals.partitions:
            shown = [tuple(row.values()) for row in lag.most_behind]
            local_rows(spark, shown, _SHOWN).show(job.show, truncate=False)
        if why:
            from kafkalog.questions.why import TABLE as REASONS
            from kafkalog.questions.why import group_reasons

            written.append(replace_rows(job, REASONS, inputs, group_reasons(views, question)))
    return ended(job, [*lines, lag.verdict], written, has_findings=bool(lag.findings))


if __name__ == "__main__":
    sys.exit(main())
