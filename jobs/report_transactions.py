"""The transactions in a log directory, and what keeps each partition's last stable offset back.

Tables: transaction_report, a row per transaction and partition; stable_offsets, one per partition.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from kafkalog.analysis.partitions.transactions import (
    open_transactions,
    outcome_totals,
    stable_offset_table,
    transactions_with_states,
)
from kafkalog.coordination.groups.transactional_ids import OpenTransactionRule, transaction_words
from kafkalog.spark.jobs.job import (
    ExitCode,
    add_time_argument,
    announced_inputs,
    count,
    job_parser,
    run_job,
)
from kafkalog.spark.jobs.transaction_judgement import judged_transactions
from kafkalog.spark.jobs.transaction_views import transaction_views
from kafkalog.spark.session import job_session
from kafkalog.spark.tables import replace_rows


def run(args: Namespace) -> ExitCode:
    """Find the transactions, write the tables, and say what they come to."""
    inputs = announced_inputs(args)
    with job_session("kafkalog report_transactions", with_delta=args.format == "delta") as spark:
        views = transaction_views(spark, inputs, mode=args.mode, at_ms=args.at)
        stable = stable_offset_table(views.stable_offsets).persist()
        timeout_ms = args.max_transaction_timeout * 60_000
        rule = OpenTransactionRule(args.at, timeout_ms, views.incomplete)
        found = transactions_with_states(views.transactions, stable, views.states)
        report = judged_transactions(found, rule).persist()
        paths = [
            replace_rows(report, args.output, "transaction_report", args.format, inputs),
            replace_rows(stable, args.output, "stable_offsets", args.format, inputs),
        ]
        totals = {row.outcome: row.transactions for row in outcome_totals(report).collect()}
        if args.show and (totals.get("open") or totals.get("hanging")):
            print("transactions that have not ended:")
            open_transactions(report).show(args.show, truncate=False)
        held_back = stable.where("offsets_held_back > 0").count()
    print(transaction_words(totals, held_back), f"tables: {' '.join(paths)}", sep="\n")
    is_found = bool(totals.get("hanging"))
    return ExitCode.FINDINGS if args.fail_on_findings and is_found else ExitCode.DONE


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job_parser(
        "report_transactions",
        "Report each transaction: how it ended, when, what it wrote, and who holds the last stable "
        "offset of a partition; findings are hanging transactions, which no coordinator will end.",
        "/var/lib/kafka/data --output /tmp/transactions",
    )
    parser.add_argument(
        "--max-transaction-timeout",
        metavar="MINUTES",
        type=count,
        default=15,
        help="the brokers' transaction.max.timeout.ms, in minutes: an open transaction whose last "
        "batch is not older is not called hanging (default: 15)",
    )
    add_time_argument(parser, "--at", "the time of the report", time.time_ns() // 1_000_000)
    return run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
