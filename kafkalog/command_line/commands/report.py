"""`kafkalog report`: the job jobs/report.py under a name of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import click

from kafkalog.command_line.commands.job import run_job_file
from kafkalog.command_line.terminal import print_error
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.click_options import PATHS_MEANING
from kafkalog.words import time_text

_NO_JAVA = (
    "Spark makes the report and needs Java 17, but there is no program `java` in JAVA_HOME or "
    "PATH: install it, for example with `apt-get install openjdk-17-jre-headless`"
)

_EPILOG = f"""\
{PATHS_MEANING}
Give the log directories of all brokers of one cluster. The page needs no network. It shows names of
topics, groups and paths, hashes of keys, and no values.

\b
Examples:
  kafkalog report /var/lib/kafka/data
  kafkalog report '/backup/broker-*' --output-dir /tmp --server-properties server.properties

\b
Exit codes: 0 done; 1 findings, only with --fail-on-findings; 2 wrong arguments;
3 some or all of the input cannot be read: stderr names it
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.output_dir_option("Directory of report.html.", default=".")
@shared.config_options
@shared.as_of_option("Report as of this time instead of now")
@shared.show_keys_option
@shared.fail_on_findings_option(default=False)
def report(
    paths: Sequence[str], show_keys: bool, fail_on_findings: bool, **options: str | int | None
) -> int:
    """Write one HTML page about a cluster: storage, traffic, compression, keys, damage, lag,
    transactions and retention."""
    if not _has_java():
        return print_error(_NO_JAVA, ExitCode.UNREADABLE_INPUT)
    given = [
        text
        for name, value in options.items()
        if value is not None
        for text in (
            f"--{name.replace('_', '-')}",
            time_text(value) if isinstance(value, int) else value,
        )
    ]
    flags = {"--show-keys": show_keys, "--fail-on-findings": fail_on_findings}
    given += [flag for flag, is_given in flags.items() if is_given]
    return run_job_file("report", [*given, "--", *paths])


def _has_java() -> bool:
    """Return whether Spark will find Java: it looks in JAVA_HOME first."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java") is not None
