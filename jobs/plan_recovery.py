"""Show what a broker would do to a log directory at its next start, and what could be saved.

Tables: recovery_plan, a row per partition; node_starts, a row per node; log_dir_starts, a row per
log directory; producer_sequences, a row per irregularity in the sequence numbers of idempotent
producers.
"""

from __future__ import annotations

import sys

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options.recovery_options import RecoveryOptions, recovery_options

_SHOWN = (
    "topic", "partition", "log_end_offset", "cut_file", "cut_position", "cut_kind",
    "lost_records", "salvageable_records", "missing_offsets", "remaining_faults",
    "consumers_stop_at", "padded_time_indexes", "start_error",
)  # fmt: skip


@job_command("plan-recovery", "/var/lib/kafka/data --output-dir /tmp/plan")
@recovery_options
def main(job: JobSettings, given: RecoveryOptions) -> ExitCode:
    """Show what a broker would do to log directories at its next start, and what could be saved.
    Findings are partitions that lose or have lost records, that keep damage, that are set aside or
    have no leader, and a node that does not start."""
    from kafkalog.inspection.metadata.current_topics import Doubles
    from kafkalog.questions.node_request import recovery_request
    from kafkalog.questions.node_start import DIRECTORIES, NODES
    from kafkalog.questions.recovery import PLAN, SEQUENCES, recovery
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run, print_absent
    from kafkalog.spark.tables import show_rows

    settings = recovery_request(given)
    inputs, logs = announced_logs(job, Doubles.UNSAID)
    with job_run(job, inputs, logs) as run:
        found, sequences = recovery(run.views, settings)
        tables = {table: found.table(table) for table in (PLAN, NODES, DIRECTORIES)}
        run.save({**tables, SEQUENCES: sequences})
        if found.totals.findings:
            show_rows(run.spark, PLAN, found.findings, _SHOWN, job.show)
    print_absent(inputs, logs)
    words = (*found.nodes.lines(), found.words())
    return run.ended(words, has_findings=found.has_findings)


if __name__ == "__main__":
    sys.exit(main())
