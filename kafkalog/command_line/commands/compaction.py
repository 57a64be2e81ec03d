"""`kafkalog compaction`: whether cleaned logs keep the cleaner's guarantees, and what a cleaning
would free."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_options,
    exit_code,
    save_tables,
    write_answer,
    write_verdict,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.command_line.terminal import print_note
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.config_files import ConfigSources
from kafkalog.views.options.parameter_types import GivenPath

_PARTITIONS, _FINDINGS = "compaction_report", "compaction_findings"
_TEXT_COLUMNS = {
    _PARTITIONS: (
        *("topic", "partition", "errors", "warnings", "is_due", "dirty_ratio", "why_not"),
        *("freeable_bytes", "cleaned_records", "cleaner_checkpoint", "log_end_offset"),
    ),
    _FINDINGS: (
        *("topic", "partition", "severity", "kind", "offset", "other_offset", "key", "detail"),
    ),
}
_TABLES = {"finding": _FINDINGS, "partition": _PARTITIONS}

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command changes nothing. A log that was cleaned has one record of each key at most, and no
record of an aborted transaction. Findings are keys, deletes and markers for which that is not so,
and, with --before, keys whose last record is lost since an earlier copy. Partitions of topics
without the policy `compact` are left out.

\b
Examples:
  kafkalog compaction /var/lib/kafka/data
  kafkalog compaction /var/lib/kafka/data --by partition --server-properties server.properties
  kafkalog compaction /var/lib/kafka/data --before /mnt/copy/kafka-logs --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@click.option(
    "--before", metavar="LOG_DIR", type=GivenPath(), help="An earlier copy, to find lost keys."
)
@shared.config_options
@shared.as_of_option("Check as of this time instead of now")
@answer_options(tuple(_TABLES), "A row per finding, or per compacted partition.")
@shared.processes_option
def compaction(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    before: str | None,
    configs: ConfigSources,
    as_of: int | None,
    by: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Check whether cleaned logs keep the cleaner's guarantees, and what a cleaning would free."""
    from kafkalog.inspection.metadata.current_topics import find_logs
    from kafkalog.questions.compaction import CompactionRequest
    from kafkalog.questions.compaction import compaction as answer
    from kafkalog.storage.log_dir.other_entries import absent_lines

    table, table_format = _TABLES[by], output.table_format
    columns = answer_columns(table, _TEXT_COLUMNS[table], table_format)
    config = configs.options()
    every = logs_of_topics(paths)
    logs = logs_of_topics(paths, topics, partitions, every)
    if before is not None:
        find_logs([before], strict=False)
    copies = [] if before is None else [before]
    place = output.tables_of_logs(_TEXT_COLUMNS, paths, logs, copies)
    settings = CompactionRequest(
        time.time_ns() // 1_000_000 if as_of is None else as_of, config, before, logs
    )
    with views_with_progress(paths, every, processes, selected=logs) as views:
        found = answer(views, settings)
    for line in absent_lines(paths, logs, topics, partitions):
        print_note(line)
    rows = found.report if table == _PARTITIONS else found.findings
    write_answer(columns, rows, table_format, show=show, texts={"dirty_ratio": "{:.2f}".format})
    if by == "finding" and found.totals.partitions and table_format == "text":
        print_note("--by partition shows all compacted partitions")
    write_verdict(found.words(), table_format, has_findings=found.has_findings)
    save_tables(place, {_PARTITIONS: found.report, _FINDINGS: found.findings})
    return exit_code(has_findings=found.has_findings, fails=fail_on_findings)
