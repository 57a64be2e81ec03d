"""What a broker would do to a log directory at its next start, and what could be saved.

Tables: recovery_plan, a row per partition; producer_sequences, a row per irregularity in the
sequence numbers of idempotent producers.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, SparkSession

from kafkalog.analysis.recovery import recovery_totals, with_losses
from kafkalog.spark import job
from kafkalog.spark.options import Shutdown
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows

_SHOWN = (
    "topic", "partition", "log_end_offset", "cut_file", "cut_position", "cut_kind",
    "lost_records", "salvageable_records", "missing_offsets", "start_error",
)  # fmt: skip


def build(spark: SparkSession, log_dirs: Sequence[str], view: str, args: Namespace) -> DataFrame:
    """The plan for, or the irregularities in, all partitions under the log directories."""
    reader = spark.read.format("kafkalog").option("view", view).option("subscribe", "*")
    reader = reader.option("mode", args.mode).option("shutdown", args.shutdown)
    reader = reader.option("indexIntervalBytes", args.index_interval_bytes)
    reader = reader.option("nowMs", time.time_ns() // 1_000_000)
    return reader.load(list(log_dirs))


def verdict(totals: Row) -> str:
    """One line: whether a broker starts, and what is lost then."""
    starts = f"a broker gets through with all of {job.counted(totals.partitions, 'partition')}"
    if totals.start_errors:
        starts = (
            f"NO START: {job.counted(totals.start_errors, 'partition')} of {totals.partitions} "
            "would keep a broker from starting"
        )
    if totals.missing_offsets:
        starts += (
            f"; MISSING by the checkpoints: {job.counted(totals.missing_offsets, 'offset')} at the "
            f"end of {job.counted(totals.short_partitions, 'partition')}"
        )
    if not totals.lost_bytes:
        return starts if has_findings(totals) else f"{starts}; nothing is lost"
    return (
        f"{starts}; LOST: {job.counted(totals.lost_bytes, 'byte')} in "
        f"{job.counted(totals.cut_partitions, 'partition')}, of which "
        f"{job.counted(totals.salvageable_bytes, 'byte')} with "
        f"{job.counted(totals.salvageable_records, 'record')} are sound and can be salvaged"
    )


def has_findings(totals: Row) -> bool:
    """Whether anything is lost, was lost before, or keeps a broker from starting."""
    return bool(totals.lost_bytes or totals.missing_offsets or totals.start_errors)


def run(args: Namespace) -> job.ExitCode:
    """Plan, write both tables, and say what would be lost."""
    inputs, logs = job.announced_logs(args)
    with job_session("kafkalog plan_recovery", with_delta=args.format == "delta") as spark:
        plan = build(spark, inputs, "recovery_plan", args).cache()
        sequences = build(spark, inputs, "producer_sequences", args)
        (totals,) = recovery_totals(plan).collect()
        paths = [
            replace_rows(plan, args.output, "recovery_plan", args.format, inputs),
            replace_rows(sequences, args.output, "producer_sequences", args.format, inputs),
        ]
        if args.show and has_findings(totals):
            with_losses(plan).select(*_SHOWN).show(args.show, truncate=False)
    job.tell_absent(inputs, logs)
    print(verdict(totals))
    print("tables:", *paths)
    return job.exit_code(args, has_findings=has_findings(totals))


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
