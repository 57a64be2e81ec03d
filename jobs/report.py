"""Write one HTML page about a cluster's log directories, which a browser opens without a network.

Writes report.html and no tables: what the page shows is in the tables of the other jobs.
"""

from __future__ import annotations

import sys

from kafkalog.spark.jobs.job import ExitCode, JobSettings, job_command
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources


@job_command(
    "report",
    "/var/lib/kafka/data --output-dir /tmp/report --server-properties server.properties",
    page="report.html",
)
@shared.config_options
@shared.as_of_option("Report as of this time instead of now")
@shared.show_keys_option
def main(job: JobSettings, configs: ConfigSources, as_of: int | None, show_keys: bool) -> ExitCode:
    """Write one HTML page about a cluster: storage, traffic, compression, keys, damage, lag,
    transactions, retention. Findings are what its first lines say. The page shows topic names,
    group ids and paths, hashes of keys, and no values."""
    from kafkalog.inspection.metadata.assigned_partitions import (
        cluster_images,
        missing_replica_lines,
    )
    from kafkalog.report.contents import ReportMoment
    from kafkalog.report.findings import spoken
    from kafkalog.report.page import write_report
    from kafkalog.report.reading.report_reading import ReportRequest, read_report
    from kafkalog.spark.jobs.spark_views import SparkViews
    from kafkalog.spark.jobs.tables.runs import announced_logs
    from kafkalog.spark.session import job_session
    from kafkalog.storage.files.output_files import refuse_unwritable
    from kafkalog.storage.log_dir.other_entries import absent_lines

    config = configs.options()
    inputs, logs = announced_logs(job)
    refuse_unwritable("--output-dir", job.output_dir)
    absent = [
        *absent_lines(inputs, logs),
        *missing_replica_lines(inputs, logs, cluster_images(logs)),
    ]
    request = ReportRequest(inputs, logs, ReportMoment.of(as_of), config, show_keys, absent)
    with job_session("kafkalog report", with_delta=False, compiles_less=True) as spark:
        report = read_report(SparkViews(spark, inputs, logs, {"mode": job.mode}), request)
    lines, has_findings = spoken(report)
    print(*lines, f"report: {write_report(report, job.output_dir)}", sep="\n")
    return job.exit_code(has_findings=has_findings)


if __name__ == "__main__":
    sys.exit(main())
