"""Compute the lag of every consumer group from the offsets topic and the logs, now or in the past.

Table: consumer_lag, a row per group, topic and partition.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.spark.jobs.lag.lag_options import LagRequest, lag_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafkalog.analysis.lag.consumer_lag import ZookeeperSources
    from kafkalog.spark.jobs.lag.lag_settings import ConsumerLagSettings
    from kafkalog.spark.jobs.lag.lag_views import LagViews
    from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag


@job_command("consumer-lag", "/var/lib/kafka/data --output-dir /tmp/lag")
@lag_options
def main(job: JobSettings, request: LagRequest) -> ExitCode:
    """Show the lag of every consumer group in records and in time, what it is made of, who has the
    partition, and which commits are stale. Findings are records that groups lost to deletion or to
    damage, and lag above --max-lag."""
    from kafkalog.analysis.lag.consumer_lag import lag_totals, most_behind
    from kafkalog.inspection.groups.commit_reach import commit_reaches, reach_words
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.lag.lag_views import lag_views, refuse_without_commits
    from kafkalog.spark.jobs.lag.lag_words import lag_findings, lag_words
    from kafkalog.spark.jobs.lag.zookeeper_lag import readable_zookeeper
    from kafkalog.spark.session import job_session
    from kafkalog.spark.tables import replace_rows

    settings = request.settings()
    zookeeper = readable_zookeeper(
        request.zookeeper, job.mode, request.chroot, output_dir=job.output_dir
    )
    paths, logs = announced_logs(job)
    inputs = [*paths, *(zookeeper.inputs if zookeeper else ())]
    if zookeeper is None:
        refuse_without_commits(job.paths, logs)
    with job_session("kafkalog consumer-lag", with_delta=job.is_delta) as spark:
        views = lag_views(
            spark,
            job.paths,
            mode=job.mode,
            zookeeper=zookeeper,
            latest=True,
            as_of_ms=settings.as_of_ms,
        )
        lag = lag_table(views, settings).persist()
        path = replace_rows(lag, job.output_dir, "consumer_lag", job.table_format, inputs)
        (totals,) = lag_totals(lag).collect()
        reaches = commit_reaches(views.complete_from.collect())
        missing = [
            *settings.groups.missing_words("--group", lag, views.commits, "group_id"),
            *settings.topics.missing_words("--topic", lag, views.commits, "topic"),
        ]
        if job.show and totals.partitions:
            most_behind(lag).show(job.show, truncate=False)
    print(lag_words(totals), reach_words(reaches, settings.as_of_ms), sep="\n")
    for line in missing:
        print(line)
    found = lag_findings(totals, reaches, settings.max_lag)
    print(f"findings: {', '.join(found) or 'none'}", f"table: {path}", sep="\n")
    return job.exit_code(has_findings=bool(found))


def lag_table(views: LagViews, settings: ConsumerLagSettings) -> DataFrame:
    """Return the rows of table `consumer_lag`."""
    from kafkalog.analysis.lag.consumer_lag import LagSources, lag_of_groups
    from kafkalog.spark.jobs.lag.lag_reading import with_lag

    count = partial(
        with_lag,
        places=views.places,
        read_committed=settings.read_committed,
        now_ms=settings.now_ms,
        at=None if settings.as_of_ms is None else "at_ms",
    )
    lag = lag_of_groups(
        LagSources(
            views.commits,
            views.group_metadata,
            views.metadata,
            views.topics,
            views.complete_from,
            zookeeper_sources(views.zookeeper, settings.as_of_ms),
        ),
        count,
        as_of=settings.as_of_ms,
        at_ms=settings.at_ms,
        retention_ms=settings.retention_ms,
    )
    return settings.topics.matching(settings.groups.matching(lag, "group_id"), "topic")


def zookeeper_sources(zookeeper: ZookeeperLag | None, at_ms: int | None) -> ZookeeperSources | None:
    """Return what ZooKeeper's files hold besides commits, if they are given."""
    if zookeeper is None:
        return None
    from kafkalog.analysis.lag.consumer_lag import ZookeeperSources
    from kafkalog.analysis.zookeeper import zookeeper_groups as groups

    view = partial(zookeeper.view, at_ms=at_ms)
    owners = view("partition_owners").persist()
    return ZookeeperSources(
        groups.zookeeper_groups(view("consumer_registry"), owners, view("consumer_offsets")),
        groups.owned_partitions(owners),
        groups.zookeeper_topics(view("topic_registry"), view("cluster_znodes")),
        groups.zookeeper_leaders(view("partition_states")),
    )


if __name__ == "__main__":
    sys.exit(main())
