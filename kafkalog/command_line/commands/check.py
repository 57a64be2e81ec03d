"""`kafkalog check`: whether every byte of a log is sound, and every file beside it."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_output_options,
    exit_code,
    save_tables,
    shown_rows_option,
    write_findings,
    write_verdict,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.command_line.terminal import print_note, printed_columns
from kafkalog.errors import LogDirError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.words import counted

# The size of a task, after which progress is shown.
_TASK_BYTES = 32 * 1024 * 1024
_SEVERITIES = ("error", "warning", "information")
_FINDING_COLUMNS = ("file", "position", "length", "severity", "kind", "detail")

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command checks checksums, framing, offsets from batch to batch and from segment to segment, and
every record; then the indexes, producer snapshots, leader epochs and ids beside the logs.
docs/format.md explains the kinds of findings. Times that cannot be right are named and are not
findings.

\b
Examples:
  kafkalog check /var/lib/kafka/data
  kafkalog check /var/lib/kafka/data --topic orders --format json
  kafkalog check '/backup/*/orders-*' --no-indexes || alert
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@click.option("--no-indexes", is_flag=True, help="Check the logs only, not the files beside them.")
@click.option(
    "--severity",
    type=click.Choice(_SEVERITIES),
    default="warning",
    show_default=True,
    help="Report findings of this severity and above. error: records are lost, or an index is "
    "misleading; warning: something other than records is wrong; information: unusual but legal.",
)
@shown_rows_option("findings")
@shared.fail_on_findings_option(default=True)
@answer_output_options
@shared.processes_option
def check(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    no_indexes: bool,
    severity: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Check checksums, framing, offsets, records and indexes."""
    from kafkalog.inspection.metadata.assigned_partitions import (
        cluster_images,
        missing_replica_lines,
    )
    from kafkalog.inspection.metadata.current_topics import Doubles, find_logs
    from kafkalog.questions.checks import FAULTS, REPORT, checks, refuse_without_segments
    from kafkalog.questions.node_start import stop_lines
    from kafkalog.storage.log_dir.other_entries import absent_lines

    table_format = output.table_format
    printed_columns(_FINDING_COLUMNS)
    found = find_logs(paths, strict=False, doubles=Doubles.ALL)
    logs = logs_of_topics(paths, topics, partitions, found)
    absent = [
        *absent_lines(paths, logs, topics, partitions),
        *(() if topics or partitions else stop_lines(paths, logs)),
        *missing_replica_lines(paths, found, cluster_images(found), topics, partitions),
    ]
    try:
        refuse_without_segments(paths, logs)
    except LogDirError as error:
        raise LogDirError("; ".join((str(error), *absent))) from None
    tiered = sum(log.tiered_topic_id is not None for log in logs)
    if tiered and not no_indexes:
        no_indexes = tiered == len(logs)
        absent.append(
            f"the indexes of {counted(tiered, 'partition')} with segments in tiered storage are "
            "not checked"
        )
    place = output.tables_of_logs([REPORT, FAULTS], paths, found)
    passes = 1 if no_indexes else 2
    options = {"maxPartitionBytes": _TASK_BYTES}
    with views_with_progress(
        paths, logs, processes, "checking", reads=passes, options=options
    ) as views:
        checked = checks(views, with_indexes=not no_indexes)
    now_ms = time.time_ns() // 1_000_000
    for line in (*absent, *checked.time_lines(now_ms)):
        print_note(line)
    listed = _SEVERITIES[: _SEVERITIES.index(severity) + 1]
    findings = [each for each in checked.findings if each.severity in listed]
    write_findings(_FINDING_COLUMNS, findings, table_format, show=show, noun="finding")
    write_verdict(checked.words(), table_format, has_findings=bool(findings))
    save_tables(place, {REPORT: checked.report, FAULTS: checked.faults})
    return exit_code(has_findings=bool(findings), fails=fail_on_findings)
