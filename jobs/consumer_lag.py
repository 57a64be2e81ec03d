"""Compute the lag of every consumer group from the offsets topic and the logs, now or in the past.

Table: consumer_lag, a row per group, topic and partition.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options.lag_options import LagRequest, lag_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from kafkalog.analysis.lag.consumer_lag import ZookeeperSources
    from kafkalog.inspection.groups.commit_reach import LogCompleteness
    from kafkalog.questions.lag import LagRows
    from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperInput
    from kafkalog.spark.jobs.lag.lag_settings import ConsumerLagSettings
    from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
    from kafkalog.storage.partition_log import PartitionLog


@job_command("consumer-lag", "/var/lib/kafka/data --output-dir /tmp/lag")
@lag_options
def main(job: JobSettings, request: LagRequest) -> ExitCode:
    """Show the lag of every consumer group in records and in time, what it is made of, who has the
    partition, and which commits are stale. Findings are records that groups lost to deletion or to
    damage, and lag above --max-lag."""
    from kafkalog.analysis.lag.consumer_lag import most_behind
    from kafkalog.inspection.groups.commit_reach import commit_reaches, reach_words
    from kafkalog.inspection.lag.lag_table import TABLE
    from kafkalog.inspection.logs.missing_records import note_missing_records
    from kafkalog.questions.group_parts import refuse_without_commits
    from kafkalog.questions.zookeeper.zookeeper_cluster import readable_zookeeper
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.lag.lag_settings import ConsumerLagSettings
    from kafkalog.spark.jobs.lag.lag_views import lag_views
    from kafkalog.spark.jobs.lag.lag_words import lag_findings, lag_words
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.session import job_session
    from kafkalog.storage.names import CONSUMER_OFFSETS

    settings = ConsumerLagSettings.of(request, time.time_ns() // 1_000_000)
    zookeeper = readable_zookeeper(
        request.zookeeper, job.mode, request.chroot, output_dir=job.output_dir
    )
    paths, logs = announced_logs(job)
    inputs = [*paths, *(zookeeper.inputs if zookeeper else ())]
    if zookeeper is None:
        refuse_without_commits(job.paths, logs)
    with job_session("kafkalog consumer-lag", with_delta=job.is_delta, compiles_less=True) as spark:
        rows, reaches = lag_rows(spark, job, logs, zookeeper, settings)
        path = replace_rows(job, TABLE, inputs, rows)
        summary = rows.summary

        def all_commits() -> DataFrame:
            return lag_views(spark, job.paths, mode=job.mode, zookeeper=zookeeper).commits

        found = rows.names
        missing = [
            *settings.groups.words_without("--group", found.groups, all_commits, "group_id"),
            *settings.topics.words_without("--topic", found.topics, all_commits, "topic"),
        ]
        if job.show and summary.totals.partitions:
            shown = spark.createDataFrame(summary.most_behind)
            most_behind(shown).show(job.show, truncate=False)
    missing_records = note_missing_records(logs, CONSUMER_OFFSETS)
    totals, reached = summary.totals, commit_reaches([*reaches, *rows.reaches], missing_records)
    print(lag_words(totals, rows.groups), reach_words(reached, settings.as_of_ms), sep="\n")
    for line in missing:
        print(line)
    findings = lag_findings(totals, reached, settings.max_lag)
    print(f"findings: {', '.join(findings) or 'none'}", f"table: {path}", sep="\n")
    return job.exit_code(has_findings=bool(findings))


def lag_rows(
    spark: SparkSession,
    job: JobSettings,
    logs: list[PartitionLog],
    given: ZookeeperInput | None,
    settings: ConsumerLagSettings,
) -> tuple[LagRows, Sequence[LogCompleteness]]:
    """Return the rows, and how far back commits to ZooKeeper reach."""
    from pyspark.sql import functions as F

    from kafkalog.analysis import cluster_metadata as metadata
    from kafkalog.analysis.lag.commits import commits_in_effect
    from kafkalog.analysis.lag.consumer_lag import zookeeper_rows
    from kafkalog.questions.lag import LagRows
    from kafkalog.spark.jobs.lag.cluster_facts import cluster_facts
    from kafkalog.spark.jobs.lag.lag_views import metadata_messages
    from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
    from kafkalog.spark.jobs.spark_views import SparkViews

    at_ms = settings.as_of_ms
    topics: list[DataFrame] = []
    leaders: list[DataFrame] = []
    messages = metadata_messages(spark, job.paths, logs, job.mode)
    if messages is not None:
        in_force = metadata.metadata_in_force(messages, at_ms).persist()
        topics.append(metadata.metadata_topics(in_force))
        leaders.append(metadata.partition_leaders(in_force))
    zookeeper = in_zookeeper = None
    reaches: list[LogCompleteness] = []
    if given is not None:
        zookeeper = ZookeeperLag(spark, given, {log.log_dir.cluster_id for log in logs})
        sources = zookeeper_sources(zookeeper, at_ms)
        topics.append(sources.topics)
        leaders.append(sources.leaders)
        (reach,) = zookeeper.complete_from().collect()
        reaches.append(reach)
        in_zookeeper = zookeeper_rows(
            commits_in_effect(zookeeper.commits(), at_ms), sources
        ).withColumn("commits_complete_from_ms", F.lit(reach.complete_from_ms).cast("long"))
    facts = cluster_facts(logs, topics, leaders, zookeeper)
    rows = LagRows(
        SparkViews(spark, job.paths, logs, {"mode": job.mode}),
        facts,
        settings.question,
        settings.chosen,
        show=job.show,
        cluster_id=None if zookeeper is None else zookeeper.cluster_id,
        in_zookeeper=None if in_zookeeper is None else in_zookeeper.toArrow(),
    )
    return rows, reaches


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
