"""`kafkalog report`: a cluster on one page."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kafkalog.command_line.answer_output import exit_code
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.command_line.terminal import print_text
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources

_EPILOG = f"""\
{shared.PATHS_MEANING}
Give the log directories of all brokers of one cluster. The page needs no network. It shows names of
topics, groups and paths, hashes of keys, and no values. On a cluster of Spark, job report writes
the same page.

\b
Examples:
  kafkalog report /var/lib/kafka/data
  kafkalog report '/backup/broker-*' --output-dir /tmp --server-properties server.properties

\b
Exit codes: 0 done; 1 findings, only with --fail-on-findings; 2 wrong arguments;
3 some or all of the input cannot be read: stderr names it
"""
# How often the logs are read: for headers; for damage, sizes and keys at once; for transactions,
# retention and a start.
_READS = 5


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.output_dir_option("Directory of report.html.", default=".")
@shared.config_options
@shared.as_of_option("Report as of this time instead of now")
@shared.show_keys_option
@shared.fail_on_findings_option(default=False)
@shared.processes_option
def report(
    paths: Sequence[str],
    output_dir: str,
    configs: ConfigSources,
    as_of: int | None,
    show_keys: bool,
    fail_on_findings: bool,
    processes: int | None,
) -> ExitCode:
    """Write one HTML page about a cluster: storage, traffic, compression, keys, damage, lag,
    transactions and retention."""
    from kafkalog.inspection.metadata.assigned_partitions import (
        cluster_images,
        missing_replica_lines,
    )
    from kafkalog.report.contents import ReportMoment
    from kafkalog.report.findings import spoken
    from kafkalog.report.page import write_report
    from kafkalog.report.reading.report_reading import ReportRequest, read_report
    from kafkalog.storage.files.output_files import refuse_unwritable
    from kafkalog.storage.log_dir.log_dir import input_entries
    from kafkalog.storage.log_dir.other_entries import absent_lines
    from kafkalog.storage.log_dir.read_directories import directories_read, refuse_inside

    config = configs.options()
    logs = logs_of_topics(paths)
    inputs = [entry for path in paths for entry in input_entries(path)]
    refuse_inside("--output-dir", output_dir, directories_read(inputs, logs))
    refuse_unwritable("--output-dir", output_dir)
    log_dirs = [entry.path for entry in inputs]
    absent = [
        *absent_lines(log_dirs, logs),
        *missing_replica_lines(log_dirs, logs, cluster_images(logs)),
    ]
    request = ReportRequest(log_dirs, logs, ReportMoment.of(as_of), config, show_keys, absent)
    with views_with_progress(log_dirs, logs, processes, reads=_READS) as views:
        found = read_report(views, request)
    lines, has_findings = spoken(found)
    print_text("\n".join((*lines, f"report: {write_report(found, output_dir)}")))
    return exit_code(has_findings=has_findings, fails=fail_on_findings)
