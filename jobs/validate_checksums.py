"""Check which bytes of a log directory are intact: every batch of every segment.

Tables: checksum_report, a row per segment; faults, a row per damaged batch or byte range.
"""

from __future__ import annotations

import sys
import time

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command

_SHOWN = ("file", "position", "length", "severity", "kind", "detail")


@job_command("validate-checksums", "/var/lib/kafka/data --output-dir /tmp/checked")
def main(job: JobSettings) -> ExitCode:
    """Check every batch of every segment: checksums, framing, offsets, records. Findings are what
    is wrong with them."""
    from kafkalog.errors import KafkaLogError
    from kafkalog.inspection.metadata.current_topics import Doubles
    from kafkalog.questions.checks import FAULTS, REPORT, checks, refuse_without_segments
    from kafkalog.spark.jobs.tables.runs import announced_logs, job_run, print_absent
    from kafkalog.views.options.options import Mode

    inputs, logs = announced_logs(job, Doubles.ALL)
    print_absent(inputs, logs)
    refuse_without_segments(inputs, logs)
    with job_run(job, inputs, logs) as run:
        checked = checks(run.views, with_indexes=False)
        totals = checked.totals
        if job.mode == Mode.FAILFAST.value and totals.faults:
            raise KafkaLogError(f"{totals.words()}; no table is written with --mode FAILFAST")
        tables = {REPORT: checked.report, FAULTS: checked.faults}
        run.save(tables, {FAULTS: _SHOWN})
    has_findings = bool(totals.faults or checked.missing or checked.others)
    lines = [*checked.time_lines(time.time_ns() // 1_000_000), checked.words()]
    return run.ended(lines, has_findings=has_findings)


if __name__ == "__main__":
    sys.exit(main())
