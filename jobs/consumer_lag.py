"""The lag of every consumer group, from the offsets topic and the logs, now or at a past moment.

Table: consumer_lag, a row per group, topic and partition.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame, Row

from kafkalog.analysis.consumer_lag import LagSources, lag_of_groups, lag_totals, most_behind
from kafkalog.spark.commit_reach import CommitReach, commit_reach, reach_words
from kafkalog.spark.job import (
    ExitCode,
    announced_inputs,
    counted,
    exit_code,
    job_parser,
    run_job,
)
from kafkalog.spark.lag_arguments import add_lag_arguments, matching
from kafkalog.spark.lag_reading import with_lag
from kafkalog.spark.lag_views import LagViews, lag_views
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows


def lag_table(views: LagViews, args: Namespace) -> DataFrame:
    """The rows of table `consumer_lag`."""
    count = partial(
        with_lag,
        places=views.places,
        read_committed=args.isolation_level == "read_committed",
        at=None if args.as_of is None else "at_ms",
    )
    lag = lag_of_groups(
        LagSources(
            views.commits, views.group_metadata, views.metadata, views.topics, views.complete_from
        ),
        count,
        as_of=args.as_of,
        at_ms=time.time_ns() // 1_000_000 if args.as_of is None else args.as_of,
        retention_ms=args.offsets_retention * 60_000,
    )
    return matching(matching(lag, "group_id", args.groups), "topic", args.topics)


def verdict(totals: Row) -> str:
    """How many are behind, by how much, what nobody will read, and what is not known."""
    head = f"{counted(totals.groups, 'group')}, {counted(totals.partitions, 'partition')}"
    behind = f"{totals.behind:,} behind, {counted(totals.records, 'record')} to read"
    if totals.time_lag_ms is not None:
        behind += f", the oldest {totals.time_lag_ms / 1000:,.0f} s old"
    stale = f"{counted(totals.stale, 'stale commit')} not counted"
    lost = f"offsets lost to deletion in {counted(totals.below_log_start, 'partition')}"
    lines = [f"{head}: {behind}; {stale}; {lost}, hidden by damage in {totals.damaged:,}"]
    if totals.expired:
        lines.append(
            f"{counted(totals.expired, 'commit')} expired since, and counted all the same: of a "
            "copy made earlier give --as-of the time of the copy"
        )
    if totals.unknown:
        lines.append(f"lag not known of {totals.unknown:,}: their logs, or as of then, not there")
    if totals.by_clocks:
        lines.append(
            f"where the log ended then is told by clocks of producers in {totals.by_clocks:,}: "
            "see high_watermark_from in docs/lag.md"
        )
    return "\n".join(lines)


def findings(totals: Row, reach: CommitReach, max_lag: int | None) -> list[str]:
    """What --fail-on-findings fails on."""
    found = []
    if max_lag is not None and (totals.most_records or 0) > max_lag:
        found.append(f"{totals.most_records:,} records to read in one partition")
    if totals.below_log_start:
        found.append("offsets lost to deletion")
    if totals.damaged or reach.damaged_ranges:
        found.append("damage")
    return found


def run(args: Namespace) -> ExitCode:
    """Find the lag, write the table, and say what it comes to."""
    inputs = announced_inputs(args)
    with job_session("kafkalog consumer_lag", with_delta=args.format == "delta") as spark:
        views = lag_views(spark, inputs, mode=args.mode)
        lag = lag_table(views, args).persist()
        path = replace_rows(lag, args.output, "consumer_lag", args.format, inputs)
        (totals,) = lag_totals(lag).collect()
        reach = commit_reach(views.complete_from)
        if args.show and totals.partitions:
            most_behind(lag).show(args.show, truncate=False)
    print(verdict(totals), reach_words(reach, args.as_of), sep="\n")
    found = findings(totals, reach, args.max_lag)
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
