"""Check which bytes of a log directory are intact: every batch of every segment.

Tables: checksum_report, a row per segment; faults, a row per damaged batch or byte range.
"""

from __future__ import annotations

import sys

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command

_SHOWN = ("file", "position", "length", "severity", "kind", "detail")


@job_command("validate-checksums", "/var/lib/kafka/data --output-dir /tmp/checked")
def main(job: JobSettings) -> ExitCode:
    """Check every batch of every segment: checksums, framing, offsets, records. Findings are what
    is wrong with them."""
    from kafkalog.errors import KafkaLogError, LogDirError
    from kafkalog.inspection.partitions.segment_checks import (
        CHECKED,
        FAULTS,
        REPORT,
        check_totals,
        checked_segments,
    )
    from kafkalog.spark.jobs.inputs import announced_logs, print_absent
    from kafkalog.spark.jobs.spark_views import SparkViews
    from kafkalog.spark.jobs.tables.written_tables import replace_rows
    from kafkalog.spark.session import job_session
    from kafkalog.spark.tables import show_rows
    from kafkalog.views.engine import rows_of_view
    from kafkalog.views.options.options import Mode
    from kafkalog.views.planning.directory_reads import directory_reads

    inputs, logs = announced_logs(job)
    print_absent(inputs, logs)
    if not any(log.segments for log in logs) and not directory_reads(logs):
        raise LogDirError(f"{', '.join(inputs)}: there is no segment to check")
    with job_session(
        "kafkalog validate-checksums", with_delta=job.is_delta, compiles_less=True
    ) as spark:
        views = SparkViews(spark, inputs, logs, {"mode": job.mode})
        checks = rows_of_view(views, "byte_ranges", None, checked_segments, CHECKED)
        report, found = checks.of_table(REPORT), checks.of_table(FAULTS)
        totals = check_totals(report)
        if job.mode == Mode.FAILFAST.value and totals.faults:
            raise KafkaLogError(f"{totals.words()}; no table is written with --mode FAILFAST")
        paths = [
            replace_rows(job, REPORT, inputs, report),
            replace_rows(job, FAULTS, inputs, found),
        ]
        if not found.is_empty:
            show_rows(spark, FAULTS, found, _SHOWN, job.show)
    print(totals.words())
    print("tables:", *paths)
    return job.exit_code(has_findings=bool(totals.faults))


if __name__ == "__main__":
    sys.exit(main())
