"""`kafkalog schemas`: which schema ids records name, and which schemas they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
from kafkalog.command_line.terminal import printed_columns
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.words import time_text

if TYPE_CHECKING:
    from kafkalog.questions.topics.schema_ids import SchemaIds

_TABLE = "schema_ids"
_KINDS = ("id", "partition", "schema")
_OF_ID = (
    *("topic", "field", "schema_id", "guid", "subject", "version", "schema_type", "state"),
    *("records", "first_timestamp_ms", "last_timestamp_ms"),
)
_OF_PARTITION = (
    *("topic", "partition", "field", "schema_id", "guid", "state", "records", "first_offset"),
    *("last_offset", "first_timestamp_ms", "last_timestamp_ms"),
)
_OF_SCHEMA = ("subject", "version", "schema_id", "schema_type", "state", "records", "topics")
_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("first_timestamp_ms", "last_timestamp_ms"), time_text),
    "topics": lambda names: ", ".join(names) or "-",
}

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command reads all records and looks at the first bytes of keys and values, and at headers. What
an id means comes from the topic _schemas among the paths. Findings are ids that it does not have.

\b
Examples:
  kafkalog schemas /var/lib/kafka/data
  kafkalog schemas /var/lib/kafka/data --by partition --topic orders
  kafkalog schemas /var/lib/kafka/data --by schema --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@answer_options(
    _KINDS,
    "A row per id in a topic, per id in a partition with its offsets, or per schema of the "
    "registry with the topics that use it.",
)
@shared.processes_option
def schemas(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    by: str,
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show which schema ids the records of each topic name, and which schemas they are."""
    from kafkalog.questions.topics.schema_ids import SchemaIdsRequest, schema_ids

    table_format = output.table_format
    columns = {
        "id": lambda: printed_columns(_OF_ID),
        "partition": lambda: answer_columns(_TABLE, _OF_PARTITION, table_format),
        "schema": lambda: printed_columns(_OF_SCHEMA),
    }[by]()
    found = logs_of_topics(paths)
    logs = logs_of_topics(paths, topics, partitions, found)
    place = output.tables_of_logs([_TABLE], paths, found)
    with views_with_progress(paths, found, processes, selected=logs) as views:
        ids = schema_ids(views, SchemaIdsRequest(logs))
    write_answer(columns, _rows(ids, by), table_format, show=show, texts=_TEXTS)
    write_words(ids.words(), table_format)
    save_tables(place, {_TABLE: ids.rows})
    return exit_code(has_findings=ids.has_findings, fails=fail_on_findings)


def _rows(ids: SchemaIds, by: str) -> Sequence[Mapping[str, Any]]:
    if by == "schema":
        return ids.schemas()
    return ids.by_topic() if by == "id" else [*ids.rows]
