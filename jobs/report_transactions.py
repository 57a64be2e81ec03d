"""List the transactions in a log directory, and what blocks each partition's last stable offset.

Tables: transaction_report, a row per transaction and partition; stable_offsets, one per partition.
"""

from __future__ import annotations

import sys
import time

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared


@job_command("report-transactions", "/var/lib/kafka/data --output-dir /tmp/transactions")
@shared.max_transaction_timeout_option
@shared.as_of_option("Report as of this time instead of now")
def main(job: JobSettings, max_transaction_timeout: int, as_of: int | None) -> ExitCode:
    """Report each transaction: how it ended, when, what it wrote, and who holds back the last
    stable offset of a partition. Findings are hanging transactions, which no coordinator will
    end."""
    from kafkalog.analysis.partitions.transactions import (
        open_transactions,
        outcome_totals,
        stable_offset_table,
        transactions_with_states,
    )
    from kafkalog.coordination.groups.transactional_ids import (
        OpenTransactionRule,
        transaction_words,
    )
    from kafkalog.spark.jobs.inputs import announced_logs, is_small
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.jobs.transaction_judgement import judged_transactions
    from kafkalog.spark.session import job_session
    from kafkalog.spark.topic_views import transaction_views

    inputs, logs = announced_logs(job)
    at_ms = time.time_ns() // 1_000_000 if as_of is None else as_of
    with job_session(
        "kafkalog report-transactions", with_delta=job.is_delta, compiles_less=is_small(logs)
    ) as spark:
        views = transaction_views(spark, inputs, mode=job.mode, at_ms=at_ms)
        stable = stable_offset_table(views.stable_offsets).persist()
        rule = OpenTransactionRule(at_ms, max_transaction_timeout * 60_000, views.incomplete)
        found = transactions_with_states(views.transactions, stable, views.states)
        report = judged_transactions(found, rule).persist()
        paths = [
            replace_rows(job, "transaction_report", inputs, report),
            replace_rows(job, "stable_offsets", inputs, stable),
        ]
        totals = {row.outcome: row.transactions for row in outcome_totals(report).collect()}
        if job.show and (totals.get("open") or totals.get("hanging")):
            print("transactions that have not ended:")
            open_transactions(report).show(job.show, truncate=False)
        held_back = stable.where("offsets_held_back > 0").count()
    print(transaction_words(totals, held_back), f"tables: {' '.join(paths)}", sep="\n")
    return job.exit_code(has_findings=bool(totals.get("hanging")))


if __name__ == "__main__":
    sys.exit(main())
