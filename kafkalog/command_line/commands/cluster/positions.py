"""`kafkalog positions`: whether positions that others than groups keep are still in the logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from kafkalog.command_line.answer_output import (
    AnswerOutput,
    answer_columns,
    answer_output_options,
    exit_code,
    save_tables,
    shown_rows_option,
    write_answer,
    write_words,
)
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.words import time_text

_TABLE = "kept_positions"
# A narrow terminal shows the first ones.
_TEXT_COLUMNS = (
    *("keeper", "topic", "partition", "next_offset", "status", "records_behind"),
    *("log_start_offset", "log_end_offset", "kept_in", "name"),
)
_TEXTS: dict[str, Callable[[Any], str]] = dict.fromkeys(("at_ms", "deleted_before_ms"), time_text)

_EPILOG = """\
\b
PATH is a place that keeps positions, or a broker's log directory; at least one of the latter:
  the checkpoint of a query of Spark's, which reads Kafka or, with kafkalog, log directories
  a Delta, Iceberg or Parquet table: kafkalog's own, Spark's with the query's checkpoint beside
  it, and that of Kafka Connect's Iceberg sink
  log directories with the topics of Connect's source connectors and of MirrorMaker

\b
STATUS is the first that holds: topic_deleted, topic_made_again, no_log, ahead, deleted,
never_written, behind, at_end. Findings are topic_deleted, topic_made_again, ahead and deleted.

\b
Examples:
  kafkalog positions /srv/spark/checkpoints/orders /var/lib/kafka/data
  kafkalog positions /srv/lake/orders /srv/spark/checkpoints/orders /var/lib/kafka/data
  kafkalog positions /var/lib/kafka/data --catalog lake --table shop.orders
  kafkalog positions /var/lib/kafka/data --connect-topic my-connect-offsets --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.catalog_option("An Iceberg catalog, with a table beside those in PATH.")
@click.option("--table", metavar="NAME", help="A table of the catalog.")
@shared.connect_topic_option
@shown_rows_option("rows")
@shared.fail_on_findings_option(default=True)
@answer_output_options
@shared.processes_option
def positions(
    paths: Sequence[str],
    catalog: str | None,
    table: str | None,
    connect_topics: Sequence[str],
    show: int,
    fail_on_findings: bool,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Compare positions that Spark, tables, Connect and MirrorMaker keep with the logs."""
    from kafkalog.questions.positions.kept_positions import (
        PositionsRequest,
        divided_paths,
        keepers_suggested,
        refuse_without_positions,
    )
    from kafkalog.questions.positions.kept_positions import positions as answer

    table_format = output.table_format
    columns = answer_columns(_TABLE, _TEXT_COLUMNS, table_format)
    keepers, log_dirs = divided_paths(paths)
    with keepers_suggested(log_dirs):
        logs = logs_of_topics(log_dirs)
    place = output.tables_of_logs([_TABLE], log_dirs, logs, keepers)
    of_catalog = shared.catalog_table(catalog, table)
    now_ms = time.time_ns() // 1_000_000
    request = PositionsRequest(keepers, now_ms, connect_topics, of_catalog)
    with views_with_progress(log_dirs, logs, processes) as views:
        found = answer(views, request)
    refuse_without_positions(found, [*keepers, *log_dirs])
    write_answer(columns, found.rows, table_format, show=show, texts=_TEXTS)
    write_words(found.words(), table_format)
    save_tables(place, {_TABLE: found.rows})
    return exit_code(has_findings=found.has_findings, fails=fail_on_findings)
