"""`kafkalog connect`: the connectors of Kafka Connect, their tasks and source offsets."""

from __future__ import annotations

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
from kafkalog.words import time_text

_TABLES = {"connector": "connectors", "task": "connector_tasks", "offset": "connector_offsets"}
_COLUMNS = {
    "connector": (
        *("connector", "target_state", "state", "tasks", "tasks_running", "tasks_failed", "topics"),
        *("source_partitions", "worker_id", "changed_ms", "connector_class"),
    ),
    "task": ("connector", "task", "state", "worker_id", "generation"),
    "offset": ("connector", "source_partition", "source_offset", "written_ms"),
}
_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("changed_ms", "written_ms"), time_text),
    "topics": lambda names: ", ".join(names) or "-",
}

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command reads the topics of the workers, of any number of Connect clusters: those with names
such as connect-configs, connect-status and connect-offsets, or mm2-configs.b.internal. Secrets in
configs are ***. A state is the last that a worker wrote: a worker that was killed leaves RUNNING
behind. Findings are connectors and tasks that failed.

\b
Examples:
  kafkalog connect /var/lib/kafka/data
  kafkalog connect /var/lib/kafka/data --by task --format json
  kafkalog connect /var/lib/kafka/data --by offset --topic my-offsets
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option("A topic of the workers, if they have other names; repeatable.")
@answer_options(tuple(_TABLES), "A row per connector, per task, or per source offset.")
@shared.processes_option
def connect(
    paths: Sequence[str],
    topics: Sequence[str],
    by: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show the connectors of Kafka Connect, their tasks and source offsets."""
    from kafkalog.questions.topics.connectors import ConnectorsRequest, connectors

    table_format = output.table_format
    columns = answer_columns(_TABLES[by], _COLUMNS[by], table_format)
    found = logs_of_topics(paths)
    logs = logs_of_topics(paths, topics, (), found) if topics else None
    place = output.tables_of_logs([*_TABLES.values()], paths, found)
    with views_with_progress(paths, found, processes, selected=logs) as views:
        answer = connectors(views, ConnectorsRequest(logs))
    tables = dict(
        zip(_TABLES.values(), (answer.connectors, answer.tasks, answer.offsets), strict=True)
    )
    write_answer(columns, [*tables[_TABLES[by]]], table_format, show=show, texts=_TEXTS)
    write_words(answer.words(), table_format)
    save_tables(place, tables)
    return exit_code(has_findings=answer.has_findings, fails=fail_on_findings)
