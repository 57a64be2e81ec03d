"""The lag of every consumer group, from the offsets topic and the logs, now or at a past moment.

Table: consumer_lag, a row per group, topic and partition.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame

from kafkalog.analysis.lag.consumer_lag import (
    LagSources,
    ZookeeperSources,
    lag_of_groups,
    lag_totals,
    most_behind,
)
from kafkalog.analysis.zookeeper.zookeeper_groups import (
    owned_partitions,
    zookeeper_groups,
    zookeeper_leaders,
    zookeeper_topics,
)
from kafkalog.inspection.groups.commit_reach import commit_reaches, reach_words
from kafkalog.spark.jobs.job import (
    ExitCode,
    announced_logs,
    exit_code,
    job_parser,
    run_job,
)
from kafkalog.spark.jobs.lag.lag_arguments import add_lag_arguments, consumer_lag_settings
from kafkalog.spark.jobs.lag.lag_reading import with_lag
from kafkalog.spark.jobs.lag.lag_settings import ConsumerLagSettings
from kafkalog.spark.jobs.lag.lag_views import LagViews, lag_views, refuse_without_commits
from kafkalog.spark.jobs.lag.lag_words import lag_findings, lag_words
from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag, readable_zookeeper
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows


def lag_table(views: LagViews, settings: ConsumerLagSettings) -> DataFrame:
    """The rows of table `consumer_lag`."""
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
    """What ZooKeeper's files say besides commits, if they are given."""
    if zookeeper is None:
        return None
    view = partial(zookeeper.view, at_ms=at_ms)
    owners = view("partition_owners").persist()
    return ZookeeperSources(
        zookeeper_groups(view("consumer_registry"), owners, view("consumer_offsets")),
        owned_partitions(owners),
        zookeeper_topics(view("topic_registry"), view("cluster_znodes")),
        zookeeper_leaders(view("partition_states")),
    )


def run(args: Namespace) -> ExitCode:
    """Find the lag, write the table, and say what it comes to."""
    settings = consumer_lag_settings(args)
    zookeeper = readable_zookeeper(args.zookeeper, args.mode, args.chroot, output_dir=args.output)
    found, logs = announced_logs(args)
    inputs = [*found, *(zookeeper.inputs if zookeeper else ())]
    if zookeeper is None:
        refuse_without_commits(args.log_dirs, logs)
    with job_session("kafkalog consumer_lag", with_delta=args.format == "delta") as spark:
        views = lag_views(spark, args.log_dirs, mode=args.mode, zookeeper=zookeeper)
        lag = lag_table(views, settings).persist()
        path = replace_rows(lag, args.output, "consumer_lag", args.format, inputs)
        (totals,) = lag_totals(lag).collect()
        reaches = commit_reaches(views.complete_from.collect())
        if args.show and totals.partitions:
            most_behind(lag).show(args.show, truncate=False)
    print(lag_words(totals), reach_words(reaches, settings.as_of_ms), sep="\n")
    found = lag_findings(totals, reaches, settings.max_lag)
    print(f"findings: {', '.join(found) or 'none'}", f"table: {path}", sep="\n")
    return exit_code(args, has_findings=bool(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job_parser(
        "consumer_lag",
        "Tell the lag of every consumer group in records and in time, what it is made of, who has "
        "the partition, and which commits are stale. Findings are records that groups lost to "
        "deletion or to damage, and lag above --max-lag.",
        "/var/lib/kafka/data --output /tmp/lag",
    )
    add_lag_arguments(parser)
    return run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
