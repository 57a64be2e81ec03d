"""List the transactions in a log directory, and what blocks each partition's last stable offset.

Tables: transaction_report, a row per transaction and partition; stable_offsets, one per partition.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared


@job_command("report-transactions", "/var/lib/kafka/data --output-dir /tmp/transactions")
@shared.max_transaction_timeout_option
@shared.as_of_option("Report as of this time instead of now")
def main(job: JobSettings, max_transaction_timeout: int, as_of: int | None) -> ExitCode:
    """Report each transaction: how it ended, when, what it wrote, and who holds back the last
    stable offset of a partition. Findings are hanging transactions, which no coordinator will
    end."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from kafkalog.analysis.partitions.transactions import open_transactions
    from kafkalog.coordination.groups.transactional_ids import TransactionalIds, transaction_words
    from kafkalog.inspection.groups.transaction_states import (
        STATES,
        newest_states,
        open_transaction_rule,
    )
    from kafkalog.spark.jobs.inputs import announced_logs
    from kafkalog.spark.jobs.planned_views import PlannedViews
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.jobs.transaction_judgement import (
        REPORT,
        TransactionJudging,
        stable_offset_holders,
    )
    from kafkalog.spark.kept_rows import kept_rows, kept_together
    from kafkalog.spark.session import job_session
    from kafkalog.spark.tables import spark_schema
    from kafkalog.storage.names import TRANSACTION_STATE

    inputs, logs = announced_logs(job)
    at_ms = time.time_ns() // 1_000_000 if as_of is None else as_of
    with job_session(
        "kafkalog report-transactions", with_delta=job.is_delta, compiles_less=True
    ) as spark:
        views = PlannedViews(spark, inputs, logs, {"mode": job.mode, "asOf": at_ms})
        of_states = newest_states, from_arrow_schema(STATES)
        reads = {
            "stable": views.view("stable_offsets"),
            "states": views.reduced("transaction_states", *of_states, subscribe=TRANSACTION_STATE),
        }
        stable, states = kept_together(reads)
        ids = TransactionalIds()
        for record in states:
            ids.add(record)
        rule, _ = open_transaction_rule(logs, at_ms, max_transaction_timeout * 60_000)
        judging = TransactionJudging(rule, ids.by_producer(), stable_offset_holders(stable))
        report = kept_rows(views.reduced("transactions", judging, spark_schema(REPORT)))
        paths = [
            replace_rows(job, "transaction_report", inputs, report),
            replace_rows(job, "stable_offsets", inputs, stable),
        ]
        totals = Counter(report.column("outcome").to_pylist())
        if job.show and (totals.get("open") or totals.get("hanging")):
            print("transactions that have not ended:")
            open_transactions(report.frame).show(job.show, truncate=False)
        held_back = sum((row["offsets_held_back"] or 0) > 0 for row in stable)
    print(transaction_words(totals, held_back), f"tables: {' '.join(paths)}", sep="\n")
    return job.exit_code(has_findings=bool(totals.get("hanging")))


if __name__ == "__main__":
    sys.exit(main())
