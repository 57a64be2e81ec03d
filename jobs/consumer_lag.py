"""The lag of every consumer group, from the offsets topic and the logs, now or at a past moment.

Table: consumer_lag, a row per group, topic and partition.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafkalog.analysis.cluster_metadata import metadata_topics, partition_leaders, records_in_force
from kafkalog.analysis.commits import commits_in_effect, with_commit_status
from kafkalog.analysis.consumer_lag import (
    commits_and_assignments,
    consumer_lag,
    lag_totals,
    most_behind,
)
from kafkalog.analysis.groups import (
    group_members,
    groups,
    latest_group_records,
    member_partitions,
)
from kafkalog.spark.job import (
    ExitCode,
    announced_inputs,
    counted,
    exit_code,
    job_parser,
    run_job,
)
from kafkalog.spark.lag_arguments import add_lag_arguments
from kafkalog.spark.lag_reading import with_lag
from kafkalog.spark.lag_views import lag_views
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows


def lag_table(spark: SparkSession, args: Namespace, inputs: Sequence[str]) -> DataFrame:
    """The rows of table `consumer_lag`."""
    views = lag_views(spark, inputs, mode=args.mode)
    at_ms = time.time_ns() // 1_000_000 if args.as_of is None else args.as_of
    commits = commits_in_effect(views.commits, args.as_of).persist()
    latest = latest_group_records(views.group_metadata, args.as_of).persist()
    members, topics, leaders = group_members(latest).persist(), views.topics, None
    if views.metadata is not None:
        in_force = records_in_force(views.metadata, args.as_of).persist()
        topics = topics.unionByName(metadata_topics(in_force))
        leaders = partition_leaders(in_force)
    known = groups(latest, commits).persist()
    rows = commits_and_assignments(commits, member_partitions(members, topics))
    if args.topics is not None:
        rows = rows.where(F.col("topic").rlike(args.topics))
    with_accounts = with_lag(
        rows.withColumn("at_ms", F.lit(at_ms)),
        views.places,
        read_committed=args.isolation_level == "read_committed",
        at=None if args.as_of is None else "at_ms",
    )
    retention_ms = args.offsets_retention * 60_000
    # Not before, for the commits of all groups tell how far a log had come.
    if args.groups is not None:
        with_accounts = with_accounts.where(F.col("group_id").rlike(args.groups))
    judged = with_commit_status(
        with_accounts, known, members, topics, at_ms=at_ms, retention_ms=retention_ms
    )
    return consumer_lag(judged, known, leaders, at_ms=at_ms)


def verdict(totals: Row) -> str:
    """How many are behind, by how much, and what nobody will read."""
    head = f"{counted(totals.groups, 'group')}, {counted(totals.partitions, 'partition')}"
    behind = f"{totals.behind:,} behind, {counted(totals.records, 'record')} to read"
    if totals.time_lag_ms is not None:
        behind += f", the oldest {totals.time_lag_ms / 1000:,.0f} s old"
    lost = f"{totals.below_log_start:,} lost records to deletion, {totals.damaged:,} to damage"
    return f"{head}: {behind}; {counted(totals.stale, 'stale commit')}; {lost}"


def run(args: Namespace) -> ExitCode:
    """Find the lag, write the table, and say what it comes to."""
    inputs = announced_inputs(args)
    with job_session("kafkalog consumer_lag", with_delta=args.format == "delta") as spark:
        lag = lag_table(spark, args, inputs).persist()
        path = replace_rows(lag, args.output, "consumer_lag", args.format, inputs)
        (totals,) = lag_totals(lag).collect()
        if args.show and totals.behind:
            most_behind(lag).show(args.show, truncate=False)
    print(verdict(totals), f"table: {path}", sep="\n")
    is_late = args.max_lag is not None and (totals.most_records or 0) > args.max_lag
    return exit_code(args, has_findings=is_late or bool(totals.below_log_start or totals.damaged))


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
