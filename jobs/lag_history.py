"""Lag and status of consumer groups over time, from the offsets topic and the logs.

Tables: lag_history, a row per group, topic, partition and commit, or moment; group_generations, a
row per generation of a group.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafkalog.analysis.lag.group_generations import group_generations
from kafkalog.analysis.lag.lag_history import (
    lag_events,
    lag_history,
    newest_statuses,
    status_totals,
)
from kafkalog.coordination.groups.lag_status import LagStatus
from kafkalog.inspection.groups.commit_reach import commit_reaches, reach_words
from kafkalog.spark.jobs.job import (
    ExitCode,
    announced_logs,
    exit_code,
    job_parser,
    run_job,
)
from kafkalog.spark.jobs.lag.lag_history_arguments import (
    add_history_arguments,
    lag_history_settings,
)
from kafkalog.spark.jobs.lag.lag_history_reading import with_statuses
from kafkalog.spark.jobs.lag.lag_settings import LagHistorySettings
from kafkalog.spark.jobs.lag.lag_views import LagViews, lag_views, refuse_without_commits
from kafkalog.spark.jobs.lag.lag_words import status_words
from kafkalog.spark.jobs.lag.zookeeper_lag import readable_zookeeper
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import read_table, replace_rows


def history(views: LagViews, settings: LagHistorySettings) -> DataFrame:
    """The rows of table `lag_history`."""
    commits = settings.topics.matching(views.commits, "topic")
    events = lag_events(commits, settings.moments, settings.burrow)
    judged = with_statuses(events, views.places, settings)
    return lag_history(judged, settings.moments, settings.burrow)


def run(args: Namespace) -> ExitCode:
    """Find the history, write the tables, and say where it has come to."""
    settings = lag_history_settings(args)
    zookeeper = readable_zookeeper(args.zookeeper, args.mode, args.chroot, output_dir=args.output)
    found, logs = announced_logs(args)
    inputs = [*found, *(zookeeper.inputs if zookeeper else ())]
    if zookeeper is None:
        refuse_without_commits(args.log_dirs, logs)
    with job_session("kafkalog lag_history", with_delta=args.format == "delta") as spark:
        views = lag_views(spark, args.log_dirs, mode=args.mode, zookeeper=zookeeper)
        # Few among the records of their topic, and asked for several times.
        generations = group_generations(views.group_metadata.persist())
        generations = settings.groups.matching(generations, "group_id")
        paths = [
            replace_rows(frame, args.output, name, args.format, inputs)
            for frame, name in (
                (history(views, settings), "lag_history"),
                (generations, "group_generations"),
            )
        ]
        written = read_table(spark, args.output, "lag_history", args.format)
        newest = newest_statuses(written.where(F.col("input_path").isin(inputs))).persist()
        totals = {row.status: row.groups for row in status_totals(newest).collect()}
        if args.show and totals:
            newest.show(args.show, truncate=False)
        reaches = commit_reaches(views.complete_from.collect())
    print(
        status_words(totals),
        reach_words(reaches, args.since),
        f"tables: {' '.join(paths)}",
        sep="\n",
    )
    is_damaged = any(reach.damaged_ranges for reach in reaches)
    return exit_code(args, has_findings=LagStatus.ERR.value in totals or is_damaged)


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job_parser(
        "lag_history",
        "Tell the lag and the status of consumer groups at every commit, or at regular moments, as "
        "far back as the offsets topic goes, and the generations of groups. Findings are groups "
        "that have a partition with an error at the end, and damage that hides commits. Of a copy "
        "made earlier give --until the time of the copy: a group that stopped with it is no error.",
        "/var/lib/kafka/data --output /tmp/history --every 5m",
    )
    add_history_arguments(parser)
    args = parser.parse_args(arguments)
    if args.since is not None and args.until is not None and args.since > args.until:
        parser.error("--since is later than --until")
    return run_job(run, args)


if __name__ == "__main__":
    sys.exit(main())
