"""Show lag and status of consumer groups over time, from the offsets topic and the logs.

Tables: lag_history, a row per group, topic, partition and commit, or moment; group_generations, a
row per generation of a group.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.lag_status import LagStatus
from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.spark.jobs.lag.lag_options import HistoryRequest, history_options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from kafkalog.spark.jobs.lag.history_summary import HistorySummary
    from kafkalog.spark.jobs.lag.lag_settings import LagHistorySettings
    from kafkalog.spark.jobs.lag.lag_views import LagViews
    from kafkalog.spark.kept_rows import KeptRows


@job_command("lag-history", "/var/lib/kafka/data --output-dir /tmp/history --every 5m")
@history_options
def main(job: JobSettings, request: HistoryRequest, burrow: BurrowSettings) -> ExitCode:
    """Show the lag and the status of consumer groups at every commit, or at regular moments, as far
    back as the offsets topic goes, and the generations of groups. Findings are groups that have a
    partition with an error at the end, and damage that hides commits. For an earlier copy give its
    time as --until-time: a group that stopped with it is not an error."""
    from kafkalog.analysis.lag.lag_history import newest_statuses, status_totals
    from kafkalog.inspection.groups.commit_reach import commit_reaches, reach_words
    from kafkalog.inspection.logs.missing_records import note_missing_records
    from kafkalog.questions.zookeeper_cluster import readable_zookeeper
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.lag.lag_history_reading import HistoryRows, HistorySources
    from kafkalog.spark.jobs.lag.lag_views import lag_views, refuse_without_commits
    from kafkalog.spark.jobs.lag.lag_words import status_words
    from kafkalog.spark.jobs.lag.zookeeper_lag import ZookeeperLag
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.kept_rows import kept_rows
    from kafkalog.spark.log_rows import commits_complete_from
    from kafkalog.spark.session import job_session
    from kafkalog.storage.names import CONSUMER_OFFSETS

    settings = request.settings(burrow)
    zookeeper = readable_zookeeper(
        request.zookeeper, job.mode, request.chroot, output_dir=job.output_dir
    )
    paths, logs = announced_logs(job)
    inputs = [*paths, *(zookeeper.inputs if zookeeper else ())]
    if zookeeper is None:
        refuse_without_commits(job.paths, logs)
    with job_session("kafkalog lag-history", with_delta=job.is_delta, compiles_less=True) as spark:
        cluster_ids = {log.log_dir.cluster_id for log in logs}
        in_zookeeper = None if zookeeper is None else ZookeeperLag(spark, zookeeper, cluster_ids)
        sources = HistorySources(job.paths, logs, job.mode, in_zookeeper)
        history = HistoryRows(spark, sources, settings)

        def views() -> LagViews:
            return lag_views(spark, job.paths, mode=job.mode, zookeeper=zookeeper)

        written = [replace_rows(job, "lag_history", inputs, history)]
        summary = history.summary
        generations = generation_rows(summary, spark, settings, views)
        written.append(replace_rows(job, "group_generations", inputs, generations))
        rows = history_rows(summary, spark, job, inputs)
        newest = kept_rows(newest_statuses(rows)).frame
        totals = {row.status: row.groups for row in status_totals(newest.coalesce(1)).collect()}
        found = settings.names_in(rows) if summary.names is None else summary.names
        missing = [
            *settings.groups.words_without(
                *("--group", found.groups, lambda: views().commits, "group_id")
            ),
            *settings.topics.words_without(
                *("--topic", found.topics, lambda: views().commits, "topic")
            ),
        ]
        if job.show and totals:
            newest.show(job.show, truncate=False)
        completeness = summary.reaches
        if completeness is None:
            completeness = commits_complete_from(spark, logs).collect()
        if in_zookeeper is not None:
            completeness = [*completeness, *in_zookeeper.complete_from().collect()]
    reaches = commit_reaches(completeness, note_missing_records(logs, CONSUMER_OFFSETS))
    print(status_words(totals), reach_words(reaches, request.from_ms), sep="\n")
    for line in missing:
        print(line)
    print("tables:", *written)
    is_damaged = any(reach.damaged_ranges for reach in reaches)
    return job.exit_code(has_findings=LagStatus.ERR.value in totals or is_damaged)


def generation_rows(
    summary: HistorySummary,
    spark: SparkSession,
    settings: LagHistorySettings,
    views: Callable[[], LagViews],
) -> KeptRows | DataFrame:
    """Return the rows of table group_generations: those that tasks have returned, or where that
    would be too many, from another reading of the offsets topic."""
    from kafkalog.analysis.lag.group_generations import group_generations

    rows = summary.generations(spark)
    if rows is not None:
        return rows
    return group_generations(settings.groups.matching(views().group_metadata, "group_id"))


def history_rows(
    summary: HistorySummary, spark: SparkSession, job: JobSettings, inputs: Sequence[str]
) -> DataFrame:
    """Return rows of table lag_history, those of the end among them: those that tasks have
    returned, or all of the inputs, from the table."""
    from pyspark.sql import functions as F

    from kafkalog.spark.tables import read_table

    rows = summary.end_rows(spark)
    if rows is not None:
        return rows
    table = read_table(spark, job.output_dir, "lag_history", job.table_format)
    return table.where(F.col("input_path").isin(inputs))


if __name__ == "__main__":
    sys.exit(main())
