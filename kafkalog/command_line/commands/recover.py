"""`kafkalog recover`: what a broker would do to its log directories at its next start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_output_options,
    exit_code,
    save_tables,
    shown_rows_option,
    write_answer,
    write_verdict,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.command_line.terminal import print_note, print_text
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.recovery_options import RecoveryOptions, recovery_options
from kafkalog.words import counted

if TYPE_CHECKING:
    from kafkalog.views.engine import Rows

_PLAN, _SEQUENCES = "recovery_plan", "producer_sequences"
_TABLES = {"partition": _PLAN, "directory": "log_dir_starts", "node": "node_starts"}
# As text, a column of these is shown where a row has something to say in it.
_NOTABLE: dict[str, Callable[[Any], bool]] = {
    "is_set_aside": bool,
    "begins_empty": bool,
    "election_lost_records": bool,
    "has_leader": lambda leads: leads is False,
    "deleted_soon": lambda soon: soon is not None and not soon["is_expected"],
    "coordinator_error": bool,
    "cleaning_stops_at": bool,
}
_TEXT_COLUMNS = {
    "log_dir_starts": ("log_dir", "directory_id", "is_online", "has_metadata", "reason", "file"),
    "node_starts": (
        *("node_id", "cluster_id", "kafka_version", "broker_starts", "metadata_version"),
        *("metadata_release", "least_kafka_version", "is_downgrade"),
    ),
    _PLAN: (
        *("topic", "partition", "broker_id", "broker_starts", "log_end_offset", "lost_records"),
        *_NOTABLE,
        *("salvageable_records", "missing_offsets", "remaining_faults", "consumers_stop_at"),
        "padded_time_indexes",
        *("cut_kind", "cut_position", "cut_file", "start_error"),
    ),
    _SEQUENCES: (
        *("topic", "partition", "kind", "producer_id", "producer_epoch", "base_offset"),
        *("first_sequence", "expected_sequence", "file", "position"),
    ),
}

_TEXTS: dict[str, Callable[[Any], str]] = {
    "deleted_soon": lambda soon: f"{counted(soon['records'], 'record')}: {soon['reason']}",
    "coordinator_error": lambda error: f"offset {error['offset']}: {error['reason']}",
}

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command changes nothing. It says whether each node starts, with every reason why not and the
line that mends it; which log directories the broker uses; where it truncates each log, which
partitions it sets aside, and what `kafkalog salvage` could save. Give all directories of a node and
--server-properties where you have it. Findings are records that are or would be lost, damage that
would remain, partitions without a leader, and a node that does not start. See docs/recovery.md.

\b
Examples:
  kafkalog recover /disk1/kafka /disk2/kafka --server-properties server.properties --user kafka
  kafkalog recover /disk1/kafka /disk2/kafka --kafka 4.4 --by node --format json
  kafkalog recover /var/lib/kafka/data
  kafkalog recover /var/lib/kafka/data --shutdown clean --all
  kafkalog recover /var/lib/kafka/data --topic orders --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@recovery_options
@shared.by_option(tuple(_TABLES), "A row per partition, per log directory, or per node.")
@click.option(
    "--all", "with_all", is_flag=True, help="As text, show partitions that lose nothing too."
)
@click.option(
    "--sequences",
    "table",
    flag_value=_SEQUENCES,
    default=None,
    help="Show irregular sequence numbers of idempotent producers instead of the plan.",
)
@shown_rows_option("rows")
@shared.fail_on_findings_option(default=True)
@answer_output_options
@shared.processes_option
def recover(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    given: RecoveryOptions,
    by: str,
    with_all: bool,
    table: str | None,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show what a broker would do to its log directories at its next start."""
    from kafkalog.inspection.metadata.current_topics import Doubles, find_logs
    from kafkalog.questions.node_request import recovery_request, without_missing
    from kafkalog.questions.node_start import DIRECTORIES, NODES
    from kafkalog.questions.recovery import recovery, recovery_plan, sequence_words
    from kafkalog.storage.log_dir.other_entries import absent_lines

    table_format = output.table_format
    table = table or _TABLES[by]
    columns = answer_columns(table, _TEXT_COLUMNS[table], table_format)
    settings = recovery_request(given, topics, partitions)
    paths = without_missing(paths, settings.node.server)
    found = find_logs(paths, strict=False, doubles=Doubles.UNSAID)
    logs = logs_of_topics(paths, topics, partitions, found)
    place = output.tables_of_logs([*_TABLES.values(), _SEQUENCES], paths, logs)
    lines: list[str] = []
    saved: dict[str, Rows] = {}
    with views_with_progress(paths, found, processes) as views:
        if place is not None:
            plan, sequences = recovery(views, settings)
            tables = (_PLAN, NODES, DIRECTORIES)
            saved = {**{name: plan.table(name) for name in tables}, _SEQUENCES: sequences}
        elif table != _SEQUENCES:
            plan = recovery_plan(views, settings)
        if table == _SEQUENCES:
            if place is None:
                (sequences,) = views.rows(settings.asked_sequences(views))
            rows, found_rows, verdict = [*sequences], [*sequences], sequence_words(sequences)
            has_findings = bool(found_rows)
        else:
            rows, verdict, lines = plan.rows(table), plan.words(), [*plan.nodes.lines()]
            found_rows = [*plan.findings] if table == _PLAN else rows
            has_findings = plan.has_findings
    for line in absent_lines(paths, logs, topics, partitions):
        print_note(line)
    is_text = table_format == "text"
    is_chosen = tuple(columns) != _TEXT_COLUMNS[table]
    if lines and is_text and not is_chosen:
        print_text("\n".join(lines))
    shown = found_rows if is_text and not with_all else rows
    has_nodes = len({log.log_dir.broker_id for log in logs}) > 1
    told = _told(columns, shown, table, has_nodes=has_nodes)
    write_answer(told, shown, table_format, show=show, texts=_TEXTS)
    write_verdict(verdict, table_format, has_findings=has_findings)
    save_tables(place, saved)
    return exit_code(has_findings=has_findings, fails=fail_on_findings)


def _told(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], table: str, *, has_nodes: bool
) -> Sequence[str]:
    """Return the columns without those that say what is usual, and the node where there is only
    one; all that --columns names."""
    if tuple(columns) != _TEXT_COLUMNS[table]:
        return columns
    return [
        name
        for name in columns
        if name not in _NOTABLE or any(_NOTABLE[name](row[name]) for row in rows)
        if name != "broker_id" or has_nodes
    ]
