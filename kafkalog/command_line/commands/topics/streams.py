"""`kafkalog streams`: how far applications of Kafka Streams are, in offsets and in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

_COLUMNS = (
    *("application_id", "topic", "partition", "committed_offset", "stream_time_ms"),
    *("processor_times_ms", "committed_ms"),
)


def _times_text(times: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {time_text(time_ms)}" for name, time_ms in times.items()) or "-"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "stream_time_ms": lambda time_ms: "-" if time_ms is None else time_text(time_ms),
    "committed_ms": time_text,
    "processor_times_ms": _times_text,
}

_EPILOG = f"""\
{shared.PATHS_MEANING}
An instance of Kafka Streams commits with each offset the largest timestamp of the records that it
has read of the partition, and the times that processors keep, such as that of the last window they
emitted: windows close by these times, not by the clock. `kafkalog groups --members` shows which
instance has which tasks.

\b
Examples:
  kafkalog streams /var/lib/kafka/data
  kafkalog streams /var/lib/kafka/data --group word-count --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.group_option
@shown_rows_option("rows")
@answer_output_options
@shared.processes_option
def streams(
    paths: Sequence[str],
    groups: Sequence[str],
    show: int,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show how far applications of Kafka Streams are, in offsets and in time."""
    from kafkalog.questions.topics.streams_positions import TABLE, streams_positions

    table_format = output.table_format
    columns = answer_columns(TABLE, _COLUMNS, table_format)
    found = logs_of_topics(paths)
    place = output.tables_of_logs([TABLE], paths, found)
    with views_with_progress(paths, found, processes) as views:
        answer = streams_positions(views, groups)
    write_answer(columns, [*answer.rows], table_format, show=show, texts=_TEXTS)
    write_words(answer.words(), table_format)
    save_tables(place, {TABLE: answer.rows})
    return ExitCode.DONE
