"""What a broker would do to a log directory at its next start, and what could be saved.

Tables: recovery_plan, a row per partition; producer_sequences, a row per irregularity in the
sequence numbers of idempotent producers.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from kafkalog.inspection.partitions.recovery_totals import RecoveryTotals, is_finding
from kafkalog.spark.jobs import job
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows, spark_schema
from kafkalog.views.options.options import Shutdown

_SHOWN = (
    "topic", "partition", "log_end_offset", "cut_file", "cut_position", "cut_kind",
    "lost_records", "salvageable_records", "missing_offsets", "remaining_faults",
    "consumers_stop_at", "start_error",
)  # fmt: skip


def build(spark: SparkSession, log_dirs: Sequence[str], view: str, args: Namespace) -> DataFrame:
    """The plan for, or the irregularities in, all partitions under the log directories."""
    reader = spark.read.format("kafkalog").option("view", view).option("subscribe", "*")
    reader = reader.option("mode", args.mode).option("shutdown", args.shutdown)
    reader = reader.option("indexIntervalBytes", args.index_interval_bytes)
    reader = reader.option("nowMs", time.time_ns() // 1_000_000)
    return reader.load(list(log_dirs))


def run(args: Namespace) -> job.ExitCode:
    """Plan, write both tables, and say what would be lost."""
    inputs, logs = job.announced_logs(args)
    with job_session("kafkalog plan_recovery", with_delta=args.format == "delta") as spark:
        rows = build(spark, inputs, "recovery_plan", args).collect()
        totals = RecoveryTotals.of(row.asDict() for row in rows)
        plan = spark.createDataFrame(rows, spark_schema("recovery_plan"))
        sequences = build(spark, inputs, "producer_sequences", args)
        paths = [
            replace_rows(plan, args.output, "recovery_plan", args.format, inputs),
            replace_rows(sequences, args.output, "producer_sequences", args.format, inputs),
        ]
        if args.show and totals.findings:
            found = [row for row in rows if is_finding(row.asDict())]
            shown = spark.createDataFrame(found, spark_schema("recovery_plan"))
            ordered = shown.orderBy("topic", "partition")
            ordered.select(*_SHOWN).show(args.show, truncate=False)
    job.tell_absent(inputs, logs)
    print(totals.words())
    print("tables:", *paths)
    return job.exit_code(args, has_findings=bool(totals.findings))


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job.job_parser(
        "plan_recovery",
        "What a broker would do to log directories at its next start, and what could be saved.",
        "/var/lib/kafka/data --output /tmp/plan",
    )
    parser.add_argument(
        "--shutdown", choices=[each.value for each in Shutdown], default="asFound",
        help="the stop before the start: by .kafka_cleanshutdown, or as given (default: asFound)",
    )  # fmt: skip
    job.add_index_interval_argument(parser, "the topics")
    return job.run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
