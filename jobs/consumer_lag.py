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
    from pyspark.sql import DataFrame, SparkSession

    from kafkalog.analysis.lag.consumer_lag import ZookeeperSources
    from kafkalog.spark.jobs.lag.cluster_facts import ClusterFacts
    from kafkalog.spark.jobs.lag.lag_settings import ConsumerLagSettings
    from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperInput, ZookeeperLag
    from kafkalog.storage.partition_log import PartitionLog


@job_command("consumer-lag", "/var/lib/kafka/data --output-dir /tmp/lag")
@lag_options
def main(job: JobSettings, request: LagRequest) -> ExitCode:
    """Show the lag of every consumer group in records and in time, what it is made of, who has the
    partition, and which commits are stale. Findings are records that groups lost to deletion or to
    damage, and lag above --max-lag."""
    from kafkalog.analysis.lag.consumer_lag import lag_totals, most_behind
    from kafkalog.inspection.groups.commit_reach import commit_reaches, reach_words
    from kafkalog.spark.jobs.inputs import announced_logs, is_small
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
    with job_session(
        "kafkalog consumer-lag", with_delta=job.is_delta, compiles_less=is_small(logs)
    ) as spark:
        rows, facts = lag_table(spark, job, logs, zookeeper, settings)
        lag = rows.persist()
        path = replace_rows(lag, job.output_dir, "consumer_lag", job.table_format, inputs)
        (totals,) = lag_totals(lag).collect()
        reaches = commit_reaches(facts.complete_from)

        def all_commits() -> DataFrame:
            return lag_views(spark, job.paths, mode=job.mode, zookeeper=zookeeper).commits

        missing = [
            *settings.groups.missing_words("--group", lag, all_commits, "group_id"),
            *settings.topics.missing_words("--topic", lag, all_commits, "topic"),
        ]
        if job.show and totals.partitions:
            most_behind(lag).show(job.show, truncate=False)
    print(lag_words(totals), reach_words(reaches, settings.as_of_ms), sep="\n")
    for line in missing:
        print(line)
    found = lag_findings(totals, reaches, settings.max_lag)
    print(f"findings: {', '.join(found) or 'none'}", f"table: {path}", sep="\n")
    return job.exit_code(has_findings=bool(found))


def lag_table(
    spark: SparkSession,
    job: JobSettings,
    logs: list[PartitionLog],
    given: ZookeeperInput | None,
    settings: ConsumerLagSettings,
) -> tuple[DataFrame, ClusterFacts]:
    """Return the rows of table `consumer_lag`, and the facts about clusters."""
    from pyspark.sql import functions as F

    from kafkalog.analysis import cluster_metadata as metadata
    from kafkalog.analysis.lag.commits import commits_in_effect
    from kafkalog.analysis.lag.consumer_lag import consumer_lag, zookeeper_rows
    from kafkalog.spark.jobs.lag import group_lag
    from kafkalog.spark.jobs.lag.cluster_facts import cluster_facts
    from kafkalog.spark.jobs.lag.lag_reading import log_places
    from kafkalog.spark.jobs.lag.lag_views import metadata_messages
    from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
    from kafkalog.storage.names import CONSUMER_OFFSETS
    from kafkalog.views.local_views import view_options
    from kafkalog.views.planning.group_reads import group_reads

    at_ms = settings.as_of_ms
    topics: list[DataFrame] = []
    leaders: list[DataFrame] = []
    messages = metadata_messages(spark, job.paths, logs, job.mode)
    if messages is not None:
        in_force = metadata.metadata_in_force(messages, at_ms).persist()
        topics.append(metadata.metadata_topics(in_force))
        leaders.append(metadata.partition_leaders(in_force))
    zookeeper = sources = in_zookeeper = None
    if given is not None:
        zookeeper = ZookeeperLag(spark, given, {log.log_dir.cluster_id for log in logs})
        sources = zookeeper_sources(zookeeper, at_ms)
        topics.append(sources.topics)
        leaders.append(sources.leaders)
    facts = cluster_facts(spark, logs, topics, leaders, zookeeper)
    options = view_options(job.paths, "offset_commits", mode=job.mode)
    reads = group_reads(options, [log for log in logs if log.topic == CONSUMER_OFFSETS])
    if zookeeper is not None and sources is not None:
        reads = [group_lag.of_cluster(read, zookeeper.cluster_id) for read in reads]
        reach = facts.of_partition(zookeeper.cluster_id, None)
        in_zookeeper = zookeeper_rows(
            commits_in_effect(zookeeper.commits(), at_ms), sources
        ).withColumn("commits_complete_from_ms", F.lit(reach.complete_from_ms).cast("long"))
    placed = group_lag.placed_commits_of(spark, options, reads, facts, at_ms).persist()
    lag = consumer_lag(
        group_lag.with_lag_and_status(
            placed, in_zookeeper, log_places(spark, logs), facts, settings
        )
    )
    return settings.topics.matching(settings.groups.matching(lag, "group_id"), "topic"), facts


def zookeeper_sources(zookeeper: ZookeeperLag, at_ms: int | None) -> ZookeeperSources:
    """Return what ZooKeeper's files hold besides commits."""
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
