"""What is in a cluster's log directories, on one HTML page that a browser opens without network.

Writes report.html and no tables: what the page shows is in the tables of the other jobs.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence

from kafkalog.report.findings import remarks, report_findings, verdict
from kafkalog.report.reading import ReportRequest, read_report
from kafkalog.report.writing import write_report
from kafkalog.spark.jobs.job import (
    ExitCode,
    add_config_arguments,
    add_time_argument,
    announced_logs,
    config_options,
    exit_code,
    job_parser,
    run_job,
)
from kafkalog.spark.session import job_session
from kafkalog.storage.files.output_files import refuse_unwritable
from kafkalog.storage.log_dir.other_entries import absent_lines


def run(args: Namespace) -> ExitCode:
    """Read everything once, write the page, and say the most important of it."""
    config = config_options(args)
    inputs, logs = announced_logs(args)
    refuse_unwritable("--output", args.output)
    absent = [*absent_lines(inputs, logs)]
    asked = ReportRequest(inputs, args.at, args.mode, config, args.show_keys, absent)
    with job_session("kafkalog report", with_delta=False) as spark:
        report = read_report(spark, asked)
    path = write_report(report, args.output)
    found = report_findings(report)
    also = (f"also: {each}" for each in remarks(report))
    print(verdict(report), *found, *also, f"report: {path}", sep="\n")
    return exit_code(args, has_findings=bool(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """The job, with its exit code."""
    parser = job_parser(
        "report",
        "Write one HTML page about a cluster: storage, traffic, compression, keys, damage, lag, "
        "transactions, retention; findings are what its first lines say. Topic names, group ids "
        "and paths are in it, keys only as hashes, values not at all.",
        "/var/lib/kafka/data --output /tmp/report --server-properties server.properties",
        output="report.html is",
    )
    add_config_arguments(parser)
    add_time_argument(parser, "--at", "the time of the report", time.time_ns() // 1_000_000)
    parser.add_argument(
        "--show-keys",
        action="store_true",
        help="show the most frequent keys themselves: whoever has the page can read them",
    )
    return run_job(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
