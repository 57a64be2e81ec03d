"""The latest committed value of each key, in a table that goes on where the last run ended.

Tables: state, a row per key; state_partitions; state_decoded, with --key- or --value-format.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame, Observation, Row, SparkSession

from kafkalog.analysis import decoding, state
from kafkalog.spark.jobs.decoding.decoding_arguments import (
    decoding_requests,
    with_decoding_arguments,
)
from kafkalog.spark.jobs.decoding.format_choices import format_choices
from kafkalog.spark.jobs.job import ExitCode, announced_inputs, counted, job_parser, run_job
from kafkalog.spark.jobs.tables.state_arguments import EXAMPLE, state_options, with_state_arguments
from kafkalog.spark.jobs.tables.state_sources import sources_frame, state_records, state_sources
from kafkalog.spark.jobs.tables.state_table import (
    planned_state_run,
    read_state,
    write_decoded,
    write_tables,
)
from kafkalog.spark.session import job_session
from kafkalog.views.options.options import Mode
from kafkalog.views.planning.state_positions import StateRun


def build(
    spark: SparkSession,
    args: Namespace,
    run: StateRun,
    partitions: DataFrame,
    keyless: Observation | None = None,
) -> DataFrame:
    """The latest record of each key in the offsets to read, deletes among them; `keyless` counts
    the records without a key."""
    records = state_records(spark, args, run, state.STATE_RECORD_COLUMNS)
    if keyless is not None:
        records = state.with_keyless_counted(records, keyless)
    return state.state(state.latest_by_key(records), partitions)


def verdict(totals: Row, planned: StateRun, keyless: int, doubts: Sequence[str]) -> list[str]:
    """How many keys there are, what was new and left out, and of which partitions the files lack
    values."""
    read = f"read {counted(planned.offsets_to_read, 'offset')}"
    if keyless:
        read += f", left out {counted(keyless, 'record')} without a key"
    deleted = f" and {counted(totals.deletes, 'delete')}" if totals.deletes else ""
    keys = f"{counted(totals.keys, 'key')}{deleted} in the table"
    return [f"{keys}; {read if planned.has_work else 'nothing is new'}", *doubts]


def run(args: Namespace) -> ExitCode:
    """Read what is new, bring the tables up to it, and say how much there is."""
    inputs, requests = announced_inputs(args), decoding_requests(args)
    sources = state_sources(state_options(args, inputs))
    with job_session("kafkalog reconstruct_state", with_delta=args.format == "delta") as spark:
        choices = format_choices(spark, requests)
        planned, partitions = planned_state_run(spark, args, sources), sources_frame(spark, sources)
        keyless = Observation()
        rows = build(spark, args, planned, partitions, keyless)
        paths = write_tables(rows, partitions, args, inputs, planned)
        # It would wait for ever where nothing is read.
        keyless_records = keyless.get[state.KEYLESS] if planned.starts else 0
        table = read_state(spark, args)
        (totals,) = state.state_totals(table).collect()
        if choices:
            table = decoding.with_decoded_columns(state.in_partitions(table, partitions), choices)
            paths.append(write_decoded(table, args))
        if args.show:
            state.newest(table).show(args.show, truncate=60)
    doubts = [source.doubt for source in sources if not source.is_exact]
    print(
        *verdict(totals, planned, keyless_records, doubts), f"tables: {' '.join(paths)}", sep="\n"
    )
    return ExitCode.FINDINGS if args.fail_on_findings and doubts else ExitCode.DONE


def parser() -> ArgumentParser:
    """The job's arguments."""
    arguments = job_parser(
        "reconstruct_state",
        "The latest committed value of each key; a second run reads what is new since the first.\n"
        "Findings are partitions of which the cleaner may have taken values of the asked moment.",
        EXAMPLE,
        mode=Mode.FAILFAST,
    )
    return with_decoding_arguments(with_state_arguments(arguments))


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    return run_job(run, parser().parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
