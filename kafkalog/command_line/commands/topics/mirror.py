"""`kafkalog mirror`: what MirrorMaker has copied, its checkpoints and its heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_output_options,
    save_tables,
    shown_rows_option,
    write_answer,
    write_words,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.words import time_text

_COLUMNS = {
    "checkpoint": (
        *("group_id", "topic", "partition", "source_offset", "target_offset", "source_cluster"),
        "written_ms",
    ),
    "offset-sync": ("topic", "partition", "source_offset", "target_offset", "written_ms"),
    "heartbeat": ("source_cluster", "target_cluster", "heartbeat_ms", "mirror_topic"),
}
_TEXTS: dict[str, Callable[[Any], str]] = dict.fromkeys(("written_ms", "heartbeat_ms"), time_text)

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command reads MirrorMaker's own topics, the last record of each key: offset syncs, each a record
in the source and its copy, are in the topics mm2-offset-syncs.CLUSTER.internal; checkpoints, which
say where a group goes on in the target, in CLUSTER.checkpoints.internal; and heartbeats. `kafkalog
positions` compares them with the logs.

\b
Examples:
  kafkalog mirror /var/lib/kafka/data
  kafkalog mirror /var/lib/kafka/data --by heartbeat
  kafkalog mirror /var/lib/kafka/data --by offset-sync --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option("One of MirrorMaker's topics; repeatable.")
@shared.by_option(tuple(_COLUMNS), "A row per checkpoint, per offset sync, or per heartbeat.")
@shown_rows_option("rows")
@answer_output_options
@shared.processes_option
def mirror(
    paths: Sequence[str],
    topics: Sequence[str],
    by: str,
    show: int,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show what MirrorMaker has copied, its checkpoints and its heartbeats."""
    from kafkalog.questions.topics.mirrors import TABLES, mirrors

    table_format = output.table_format
    columns = answer_columns(TABLES[by], _COLUMNS[by], table_format)
    found = logs_of_topics(paths)
    logs = logs_of_topics(paths, topics, (), found) if topics else None
    place = output.tables_of_logs(TABLES.values(), paths, found)
    with views_with_progress(paths, found, processes, selected=logs) as views:
        answer = mirrors(views, logs)
    write_answer(columns, [*answer.rows[by]], table_format, show=show, texts=_TEXTS)
    write_words(answer.words(), table_format)
    save_tables(place, {TABLES[kind]: rows for kind, rows in answer.rows.items()})
    return ExitCode.DONE
