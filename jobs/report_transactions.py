"""List the transactions in a log directory, and what blocks each partition's last stable offset.

Tables: transaction_report, a row per transaction and partition; stable_offsets, one per partition.
"""

from __future__ import annotations

import sys
import time

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared

_SHOWN = (
    *("topic", "partition", "outcome", "reason", "producer_id", "transactional_id"),
    *("first_offset", "records", "duration_ms", "is_stable_offset_holder"),
)


@job_command("report-transactions", "/var/lib/kafka/data --output-dir /tmp/transactions")
@shared.max_transaction_timeout_option
@shared.as_of_option("Show what was open at this time, instead of now")
def main(job: JobSettings, max_timeout_ms: int, as_of: int | None) -> ExitCode:
    """Report each transaction: how it ended, when, what it wrote, and who holds back the last
    stable offset of a partition. Findings are hanging transactions, which no coordinator will
    end. With --as-of, what had ended is exact by the clocks of brokers, what had begun as accurate
    as those of producers."""
    from kafkalog.questions.transactions import (
        REPORT,
        STABLE_OFFSETS,
        TransactionSettings,
        transactions,
    )
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run
    from kafkalog.spark.tables import show_rows

    inputs, logs = announced_logs(job)
    settings = TransactionSettings(time.time_ns() // 1_000_000, as_of, max_timeout_ms)
    with job_run(job, inputs, logs) as run:
        found = transactions(run.views, settings)
        tables = {REPORT: found.report, STABLE_OFFSETS: found.stable_offsets}
        run.save(tables)
        if job.show and (still_open := found.open()):
            print("transactions that have not ended:")
            show_rows(run.spark, REPORT, still_open, _SHOWN, job.show)
    for note in found.notes:
        print(note, file=sys.stderr)
    return run.ended(found.words(), has_findings=found.has_findings)


if __name__ == "__main__":
    sys.exit(main())
