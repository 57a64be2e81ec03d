"""`kafkalog ksql`: the streams, tables and queries of ksqlDB, by its command topic."""

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

_COLUMNS = ("kind", "name", "action", "state", "query_id", "written_ms", "statement")
_TEXTS: dict[str, Callable[[Any], str]] = {
    "written_ms": time_text,
    "state": lambda state: state or "-",
    "statement": lambda text: "-" if text is None else " ".join(text.split()),
}

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command reads the command topics, such as _confluent-ksql-default__command_topic, and shows the
statements that the servers carry out when they start: those that no later one has replaced, dropped
or terminated. --all shows the others too. Secrets in statements and properties are ***.

\b
Examples:
  kafkalog ksql /var/lib/kafka/data
  kafkalog ksql /var/lib/kafka/data --all --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option("One of the command topics; repeatable.")
@click.option("--all", "shows_all", is_flag=True, help="Also statements that have ended.")
@shown_rows_option("rows")
@answer_output_options
@shared.processes_option
def ksql(
    paths: Sequence[str],
    topics: Sequence[str],
    shows_all: bool,
    show: int,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show the streams, tables and queries of ksqlDB, by its command topic."""
    from kafkalog.questions.topics.ksql_statements import TABLE, ksql_statements

    table_format = output.table_format
    columns = answer_columns(TABLE, _COLUMNS, table_format)
    found = logs_of_topics(paths)
    logs = logs_of_topics(paths, topics, (), found) if topics else None
    place = output.tables_of_logs([TABLE], paths, found)
    with views_with_progress(paths, found, processes, selected=logs) as views:
        answer = ksql_statements(views, logs)
    rows = [*answer.rows] if shows_all else answer.in_force()
    write_answer(columns, rows, table_format, show=show, texts=_TEXTS)
    write_words(answer.words(), table_format)
    save_tables(place, {TABLE: answer.rows})
    return ExitCode.DONE
