"""The latest committed value of each key, in a table that goes on where the last run ended.

Tables: state, a row per key; state_partitions, a row per partition.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, SparkSession

from kafkalog.analysis.state import RECORD_COLUMNS, latest_by_key, newest, state, state_totals
from kafkalog.spark.job import ExitCode, announced_inputs, counted, job_parser, run_job
from kafkalog.spark.options import Mode
from kafkalog.spark.session import job_session
from kafkalog.spark.state_arguments import state_options, with_state_arguments
from kafkalog.spark.state_sources import range_options, sources_frame, state_sources
from kafkalog.spark.state_table import planned_run, write_tables
from kafkalog.spark.tables import read_table, table_schema
from kafkalog.storage.state_positions import StateRun, StateSource


def build(spark: SparkSession, args: Namespace, run: StateRun, partitions: DataFrame) -> DataFrame:
    """The latest record of each key in the offsets to read, deletes among them."""
    if not run.starts:
        return spark.createDataFrame([], table_schema("state"))
    options = {"isolationLevel": args.isolation_level, "mode": args.mode, **range_options(run)}
    reader = spark.read.format("kafkalog").option("columns", ",".join(RECORD_COLUMNS))
    return state(latest_by_key(reader.options(**options).load(args.log_dirs)), partitions)


def verdict(totals: Row, planned: StateRun, sources: Sequence[StateSource]) -> list[str]:
    """How many keys there are, what was new, and of which partitions the files lack values."""
    read = f"read {counted(planned.offsets_to_read, 'offset')}"
    deleted = f" and {counted(totals.deletes, 'delete')}" if totals.deletes else ""
    keys = f"{counted(totals.keys, 'key')}{deleted} in the table"
    doubts = [source.doubt for source in sources if not source.is_exact]
    return [f"{keys}; {read if planned.has_work else 'nothing is new'}", *doubts]


def run(args: Namespace) -> ExitCode:
    """Read what is new, bring the tables up to it, and say how much there is."""
    inputs = announced_inputs(args)
    sources = state_sources(state_options(args, inputs))
    with job_session("kafkalog reconstruct_state", with_delta=args.format == "delta") as spark:
        planned = planned_run(spark, args, sources)
        partitions = sources_frame(spark, sources)
        rows = build(spark, args, planned, partitions)
        paths = write_tables(rows, partitions, args, inputs, planned)
        table = read_table(spark, args.output, "state", args.format)
        (totals,) = state_totals(table).collect()
        if args.show:
            newest(table).show(args.show, truncate=60)
    print(*verdict(totals, planned, sources), sep="\n")
    print("tables:", *paths)
    is_exact = all(source.is_exact for source in sources)
    return ExitCode.FINDINGS if args.fail_on_findings and not is_exact else ExitCode.DONE


def parser() -> ArgumentParser:
    """The job's arguments."""
    arguments = job_parser(
        "reconstruct_state",
        "The latest committed value of each key; a second run reads what is new since the first. "
        "Findings are partitions of which the cleaner may have taken values of the asked moment.",
        "/var/lib/kafka/data --subscribe orders --output /tmp/state",
        mode=Mode.FAILFAST,
    )
    return with_state_arguments(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    return run_job(run, parser().parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
