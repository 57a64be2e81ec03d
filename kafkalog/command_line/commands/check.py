"""`kafkalog check`: whether every byte of a log is sound, and every file beside it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kafkalog.command_line.findings_table import show_option, write_findings, write_verdict
from kafkalog.command_line.inputs import (
    LOG_DIRS_MEANING,
    bytes_in,
    log_dirs_argument,
    logs_of_topics,
    partition_options,
)
from kafkalog.command_line.parallel import processes_for, processes_option
from kafkalog.command_line.terminal import progress_bar, table_format_option, tell
from kafkalog.errors import LogDirError
from kafkalog.exit_codes import ExitCode

_SEVERITIES = ("error", "warning", "information")
_FINDING_COLUMNS = ("file", "position", "length", "severity", "kind", "detail")

_EPILOG = f"""\
{LOG_DIRS_MEANING}
Checked are checksums, framing, offsets from batch to batch and from segment to segment, every
record; and the indexes, producer snapshots, leader epochs and ids beside the logs. The kinds of
findings are explained in docs/format.md.

\b
Examples:
  kafkalog check /var/lib/kafka/data
  kafkalog check /var/lib/kafka/data --topic orders --format json
  kafkalog check '/backup/*/orders-*' --no-indexes || alert
"""


@click.command(epilog=_EPILOG)
@log_dirs_argument
@partition_options
@click.option("--no-indexes", is_flag=True, help="Only the logs, not the files beside them.")
@click.option(
    "--severity",
    type=click.Choice(_SEVERITIES),
    default="warning",
    show_default=True,
    help="Findings from this severity on are listed and lead to exit code 1: error, records are "
    "lost or an index misleads; warning, something beside the records is wrong; information, legal "
    "oddities.",
)
@show_option("findings")
@table_format_option
@processes_option
def check(
    log_dirs: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    no_indexes: bool,
    severity: str,
    show: int,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """Check checksums, framing, offsets, records and indexes; exit with 1 on findings."""
    from kafkalog.command_line.findings import check_logs
    from kafkalog.storage.log_dir.other_entries import absent_lines

    logs = logs_of_topics(log_dirs, topics, partitions)
    size = bytes_in(logs)
    absent = [*absent_lines(log_dirs, logs, topics, partitions)]
    if not any(log.segments for log in logs):
        nothing = f"{', '.join(log_dirs)}: no segment there to check"
        raise LogDirError("; ".join((nothing, *absent)))
    tiered = next((log for log in logs if log.tiered_topic_id is not None), None)
    if tiered is not None and not no_indexes:
        place = tiered.segments[0].path if tiered.segments else tiered.path
        raise LogDirError(
            f"{tiered.name} has segments in tiered storage, {place}: the files "
            "beside these are not checked, their logs are with --no-indexes"
        )
    passes = 1 if no_indexes else 2
    with progress_bar(size * passes, "checking") as bar:
        checked = check_logs(
            log_dirs,
            logs,
            with_indexes=not no_indexes,
            processes=processes_for(size, processes),
            on_done=bar.update,
        )
    for line in absent:
        tell(line)
    listed = _SEVERITIES[: _SEVERITIES.index(severity) + 1]
    found = [finding for finding in checked.findings if finding.severity in listed]
    write_findings(_FINDING_COLUMNS, found, table_format, show=show, noun="finding")
    return write_verdict(checked.words(), table_format, has_findings=bool(found))
