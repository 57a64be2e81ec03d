"""`kafkalog migrate-offsets`: the offsets of groups in ZooKeeper and in Kafka, and how to move
them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_options,
    exit_code,
    save_tables,
    write_answer,
    write_words,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.zookeeper.migration_options import MigrationRequest, migration_options

_OFFSETS, _PHASES = "offset_migration", "migration_phases"
_TABLES = {"group": _PHASES, "partition": _OFFSETS}
_TEXT_COLUMNS = {
    _PHASES: (
        *("group_id", "phase", "partitions", "to_move", "refused", "is_safe", "objections"),
        "next_step",
    ),
    _OFFSETS: (
        *("group_id", "topic", "partition", "comparison", "zookeeper_offset", "kafka_offset"),
        *("offset_difference", "to_kafka", "to_kafka_warnings", "to_zookeeper", "detail"),
    ),
}

_TEXTS: dict[str, Callable[[Any], str]] = {"objections": lambda found: "; ".join(found) or "-"}
_EPILOG = f"""\
{shared.PATHS_MEANING}
Offsets are written only where --write-segments or --write-zookeeper-commands says, never to the
input. Findings are offsets that an option would have to allow to be moved, and offsets that no log
has. See docs/migration.md.

\b
Examples:
  kafkalog migrate-offsets /var/lib/kafka/data --zookeeper /var/lib/zookeeper
  kafkalog migrate-offsets /var/lib/kafka/data --zookeeper /var/lib/zookeeper --by partition
  kafkalog migrate-offsets /var/lib/kafka/data --zookeeper /var/lib/zookeeper \\
      --group billing --write-segments /tmp/segments
"""


@click.command("migrate-offsets", epilog=_EPILOG)
@shared.paths_argument
@migration_options
@answer_options(tuple(_TABLES), "A row per group, or per partition of a group.")
@shared.processes_option
def migrate_offsets(
    paths: Sequence[str],
    request: MigrationRequest,
    by: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Compare groups' offsets in ZooKeeper and in Kafka, and write what moves them."""
    from kafkalog.questions.zookeeper.migration import MigrationSettings, migration
    from kafkalog.questions.zookeeper.moved_offsets import MoveOutput, write_moves
    from kafkalog.questions.zookeeper.zookeeper_cluster import ZookeeperCluster, zookeeper_input
    from kafkalog.storage.log_dir.log_dir import input_entries
    from kafkalog.storage.log_dir.read_directories import directories_read
    from kafkalog.views.options.options import Mode

    table, table_format = _TABLES[by], output.table_format
    columns = answer_columns(table, _TEXT_COLUMNS[table], table_format)
    logs = logs_of_topics(paths)
    given = zookeeper_input(request.zookeeper, Mode.PERMISSIVE.value, request.chroot)
    entries = [entry for path in paths for entry in input_entries(path)]
    now_ms = time.time_ns() // 1_000_000
    directories = [*given.paths, *directories_read(entries, logs)]
    place = output.tables(_TEXT_COLUMNS, given.inputs, directories)
    moves = MoveOutput.of(request, now_ms)
    moves.refuse_places(directories)
    ids = {log.log_dir.cluster_id for log in logs}
    zookeeper = ZookeeperCluster(given, ids, allow_unknown=request.allow_unknown_cluster)
    with views_with_progress(paths, logs, processes) as views:
        found = migration(views, zookeeper, MigrationSettings.of(request, now_ms))
    write_answer(columns, found.tables[table], table_format, show=show, texts=_TEXTS)
    findings = found.findings()
    lines = [*found.words(), *write_moves(moves, found, logs, zookeeper, now_ms)]
    lines.append(f"findings: {', '.join(findings) or 'none'}")
    write_words(lines, table_format)
    save_tables(place, found.tables)
    return exit_code(has_findings=bool(findings), fails=fail_on_findings)
