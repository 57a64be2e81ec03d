"""Which segments a broker's retention would delete, now or at a given time, and why.

Table: retention_plan, a row per segment.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from kafkalog.analysis.partitions.retention import retention_plan, topic_totals
from kafkalog.spark.jobs.job import (
    ExitCode,
    add_config_arguments,
    add_time_argument,
    announced_inputs,
    config_options,
    counted,
    job_parser,
    run_job,
)
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows


def build(
    spark: SparkSession, log_dirs: Sequence[str], config: Mapping[str, str], args: Namespace
) -> DataFrame:
    """The plan for all segments under the log directories, internal topics included."""
    reader = spark.read.format("kafkalog").option("view", "retention_plan").option("subscribe", "*")
    reader = reader.options(**config).option("nowMs", args.at)
    return retention_plan(reader.option("mode", args.mode).load(list(log_dirs)))


def verdict(topics: Sequence[Row]) -> list[str]:
    """What goes; which topics are blocked by a timestamp in the future; what is not known."""
    going, freed = (sum(row[name] for row in topics) for name in ("segments_going", "bytes_freed"))
    whole = counted(sum(row.segments for row in topics), "segment")
    lines = [f"{going:,} of {whole} would go, {counted(freed, 'byte')} freed"]
    blocked = [row.topic or "?" for row in topics if row.blocked_partitions]
    if blocked:
        lines.append(f"blocked by a timestamp in the future: {', '.join(blocked)}")
    unknown = [row.topic or "?" for row in topics if row.bytes_unknown]
    if unknown:
        named = f"not known, see column reason: {', '.join(unknown)}"
        lines.append(f"{named} (--server-properties and --topic-config give limits)")
    return lines


def run(args: Namespace) -> ExitCode:
    """Plan, write the table, and say what it comes to."""
    config, inputs = config_options(args), announced_inputs(args)
    with job_session("kafkalog plan_retention", with_delta=args.format == "delta") as spark:
        plan = build(spark, inputs, config, args).persist()
        path = replace_rows(plan, args.output, "retention_plan", args.format, inputs)
        totals = topic_totals(plan).persist()
        if args.show:
            totals.orderBy(F.desc("bytes_freed"), "topic").show(args.show, truncate=False)
        topics = totals.orderBy("topic").collect()
    print(*verdict(topics), f"tables: {path}", sep="\n")
    is_blocked = any(row.blocked_partitions for row in topics)
    return ExitCode.FINDINGS if args.fail_on_findings and is_blocked else ExitCode.DONE


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job_parser(
        "plan_retention",
        "Say which segments retention would delete and why; findings are topics of which a "
        "timestamp in the future blocks retention.",
        "/var/lib/kafka/data --output /tmp/plan --server-properties server.properties",
    )
    add_config_arguments(parser)
    now_ms = time.time_ns() // 1_000_000
    add_time_argument(parser, "--at", "the time of the plan", now_ms)
    return run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
