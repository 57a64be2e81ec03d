"""`kafkalog report`: the job jobs/report.py by a name of its own. What needs Java says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import click

from kafkalog.command_line.commands.job import run_job_file
from kafkalog.command_line.inputs import (
    LOG_DIRS_MEANING,
    MOMENT_NAMES,
    log_dirs_argument,
    time_option,
)
from kafkalog.command_line.terminal import tell_error
from kafkalog.exit_codes import ExitCode

_NO_JAVA = (
    "Spark makes the report and needs Java 17, and no program `java` is found: install one, such "
    "as by `apt-get install openjdk-17-jre-headless`, and have it in PATH or JAVA_HOME"
)

_EPILOG = f"""\
{LOG_DIRS_MEANING}
Give the log directories of all brokers of one cluster. The page asks the network for nothing. It
shows names of topics, groups and paths, keys only as hashes, and no values.

\b
Examples:
  kafkalog report /var/lib/kafka/data
  kafkalog report '/backup/broker-*' --output /tmp --server-properties server.properties

\b
Exit codes: 0 done; 1 findings, only with --fail-on-findings; 2 wrong arguments;
3 some or all of the input cannot be read: stderr names it
"""


@click.command(epilog=_EPILOG)
@log_dirs_argument
@click.option(
    "--output",
    metavar="DIR",
    default=".",
    show_default=True,
    type=click.Path(),
    help="Where report.html is written.",
)
@click.option("--server-properties", metavar="FILE", help="The broker's settings, for retention.")
@click.option("--topic-config", metavar="FILE", help="Settings of topics, as JSON, for retention.")
@time_option(MOMENT_NAMES, "at", "The time of the report, now by default")
@click.option("--show-keys", is_flag=True, help="Show the most frequent keys, not their hashes.")
@click.option("--fail-on-findings", is_flag=True, help="Exit with 1 if the page has any.")
def report(
    log_dirs: Sequence[str], show_keys: bool, fail_on_findings: bool, **options: str | int | None
) -> int:
    """Write one HTML page about the cluster in LOG_DIR: storage, traffic, compression, keys,
    damage, lag, transactions and retention."""
    if not _has_java():
        return tell_error(_NO_JAVA, ExitCode.UNREADABLE_INPUT)
    given = [
        text
        for name, value in options.items()
        if value is not None
        for text in (f"--{name.replace('_', '-')}", str(value))
    ]
    flags = {"--show-keys": show_keys, "--fail-on-findings": fail_on_findings}
    given += [flag for flag, is_given in flags.items() if is_given]
    return run_job_file("report", [*given, "--", *log_dirs])


def _has_java() -> bool:
    """Whether Spark will find one: it looks in JAVA_HOME first."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java") is not None
