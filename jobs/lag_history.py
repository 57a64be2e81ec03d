"""Show lag and status of consumer groups over time, from the offsets topic and the logs.

Tables: lag_history, a row per group, topic, partition and commit, or moment; group_generations, a
row per generation of a group.
"""

from __future__ import annotations

import sys

from kafkalog.coordination.groups.burrow import BurrowSettings
from kafkalog.coordination.groups.lag_status import LagStatus
from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.spark.jobs.lag.lag_options import HistoryRequest, history_options


@job_command("lag-history", "/var/lib/kafka/data --output-dir /tmp/history --every 5m")
@history_options
def main(job: JobSettings, request: HistoryRequest, burrow: BurrowSettings) -> ExitCode:
    """Show the lag and the status of consumer groups at every commit, or at regular moments, as far
    back as the offsets topic goes, and the generations of groups. Findings are groups that have a
    partition with an error at the end, and damage that hides commits. For an earlier copy give its
    time as --until-time: a group that stopped with it is not an error."""
    from pyspark.sql import functions as F

    from kafkalog.analysis.lag.group_generations import group_generations
    from kafkalog.analysis.lag.lag_history import newest_statuses, status_totals
    from kafkalog.inspection.groups.commit_reach import commit_reaches, reach_words
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.lag.lag_history_reading import HistoryRows, HistorySources
    from kafkalog.spark.jobs.lag.lag_views import lag_views, refuse_without_commits
    from kafkalog.spark.jobs.lag.lag_words import status_words
    from kafkalog.spark.jobs.lag.zookeeper_lag import readable_zookeeper
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.session import job_session
    from kafkalog.spark.tables import read_table

    settings = request.settings(burrow)
    zookeeper = readable_zookeeper(
        request.zookeeper, job.mode, request.chroot, output_dir=job.output_dir
    )
    paths, logs = announced_logs(job)
    inputs = [*paths, *(zookeeper.inputs if zookeeper else ())]
    if zookeeper is None:
        refuse_without_commits(job.paths, logs)
    with job_session("kafkalog lag-history", with_delta=job.is_delta, compiles_less=True) as spark:
        views = lag_views(spark, job.paths, mode=job.mode, zookeeper=zookeeper)
        # Few among the records of their topic, and read several times.
        generations = group_generations(views.group_metadata.persist())
        commits = (
            (None, None)
            if views.zookeeper is None
            else (views.zookeeper.commits(), views.zookeeper.cluster_id)
        )
        history = HistoryRows(spark, HistorySources(job.paths, logs, job.mode, *commits), settings)
        written = [
            replace_rows(job, "lag_history", inputs, history),
            replace_rows(
                *(job, "group_generations", inputs),
                settings.groups.matching(generations, "group_id"),
            ),
        ]
        rows = read_table(spark, job.output_dir, "lag_history", job.table_format)
        rows = rows.where(F.col("input_path").isin(inputs))
        newest = newest_statuses(rows).persist()
        totals = {row.status: row.groups for row in status_totals(newest).collect()}
        missing = [
            *settings.groups.missing_words("--group", newest, lambda: views.commits, "group_id"),
            *settings.topics.missing_words("--topic", rows, lambda: views.commits, "topic"),
        ]
        if job.show and totals:
            newest.show(job.show, truncate=False)
        reaches = commit_reaches(views.complete_from.collect())
    print(status_words(totals), reach_words(reaches, request.from_ms), sep="\n")
    for line in missing:
        print(line)
    print("tables:", *written)
    is_damaged = any(reach.damaged_ranges for reach in reaches)
    return job.exit_code(has_findings=LagStatus.ERR.value in totals or is_damaged)


if __name__ == "__main__":
    sys.exit(main())
