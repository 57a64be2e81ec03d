"""The lag of every consumer group, from the offsets topic and the logs, now or at a past moment.

Table: consumer_lag, a row per group, topic and partition.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession

from kafkalog.analysis.consumer_lag import LagSources, lag_of_groups, lag_totals, most_behind
from kafkalog.spark.job import (
    ExitCode,
    announced_inputs,
    counted,
    exit_code,
    job_parser,
    run_job,
)
from kafkalog.spark.lag_arguments import add_lag_arguments, chosen, reach
from kafkalog.spark.lag_reading import with_lag
from kafkalog.spark.lag_views import lag_views
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows


def lag_table(spark: SparkSession, args: Namespace, inputs: Sequence[str]) -> DataFrame:
    """The rows of table `consumer_lag`."""
    views = lag_views(spark, inputs, mode=args.mode)
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
    return chosen(lag, args)


def verdict(totals: Row) -> str:
    """How many are behind, by how much, and what nobody will read."""
    head = f"{counted(totals.groups, 'group')}, {counted(totals.partitions, 'partition')}"
    behind = f"{totals.behind:,} behind, {counted(totals.records, 'record')} to read"
    if totals.time_lag_ms is not None:
        behind += f", the oldest {totals.time_lag_ms / 1000:,.0f} s old"
    lost = f"offsets lost to deletion in {counted(totals.below_log_start, 'partition')}"
    stale = counted(totals.stale, "stale commit")
    return f"{head}: {behind}; {stale}; {lost}, hidden by damage in {totals.damaged:,}"


def run(args: Namespace) -> ExitCode:
    """Find the lag, write the table, and say what it comes to."""
    inputs = announced_inputs(args)
    with job_session("kafkalog consumer_lag", with_delta=args.format == "delta") as spark:
        lag = lag_table(spark, args, inputs).persist()
        path = replace_rows(lag, args.output, "consumer_lag", args.format, inputs)
        (totals,) = lag_totals(lag).collect()
        if args.show and totals.behind:
            most_behind(lag).show(args.show, truncate=False)
    print(verdict(totals), reach(totals.complete_from_ms, args.as_of), f"table: {path}", sep="\n")
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
