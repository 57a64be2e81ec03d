"""`kafkalog sql`: queries over log directories, answered by DuckDB."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from kafkalog.exit_codes import ExitCode
from kafkalog.lake.decoding.decoding_requests import (
    PayloadKind,
    schema_registry_option,
    schemas_topic_option,
)
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.options import Isolation, Mode
from kafkalog.views.options.parameter_types import GivenPath

_FORMATS = ("text", "json", "csv", "parquet")
_EPILOG = f"""\
{shared.PATHS_MEANING}
Tables have the names of views and of questions' tables: records, batches, segments, consumer_lag,
transaction_report, cluster_topics and the like; `show tables` lists them, `describe records` shows
the columns of one. offset is a word of SQL: write "offset" in quotes, or records.offset. Only the
columns, topics, partitions, offsets and times that a query asks for are read. Times are in UTC.
Needs DuckDB: pip install 'kafkalog[sql]'. See docs/sql.md.

Without QUERY, queries come from a prompt, or from stdin.

\b
Examples:
  kafkalog sql /var/lib/kafka/data "select topic, count(*) from records group by 1"
  kafkalog sql /data/kafka "select * from consumer_lag where lag > 1000" --format csv
  kafkalog sql /data/kafka 'from records where "offset" = 42' --output found.parquet
  kafkalog sql /data/kafka --topic orders --value-format json \\
    "select value_decoded.customer, sum(value_decoded.amount) from records group by all"
"""


@click.command(epilog=_EPILOG)
@click.argument("arguments", metavar="PATH... [QUERY]", nargs=-1, type=GivenPath())
@shared.topic_option()
@shared.as_of_option("Plans, lag and transactions as of this time instead of now")
@shared.isolation_level_option(
    "Whether records of aborted and open transactions are rows.", Isolation.READ_UNCOMMITTED
)
@shared.mode_option(Mode.FAILFAST)
@click.option(
    "--value-format",
    type=click.Choice([kind.value for kind in PayloadKind]),
    help="Decode values: table records has columns value_decoded and value_error.",
)
@click.option(
    "--value-schema",
    metavar="SCHEMA",
    help="Text or file: for avro an Avro schema, for json a Spark DDL or a JSON Schema (default: "
    "the fields of a sample), for protobuf a descriptor set.",
)
@click.option("--value-message", metavar="NAME", help="For protobuf: the message's full name.")
@schemas_topic_option
@schema_registry_option
@shared.format_option(
    _FORMATS,
    "Default: by the ending of --output (.json, .jsonl, .csv, .parquet); text without an ending.",
    default=None,
)
@shared.output_option("Write to FILE instead of stdout, replacing an older one when complete.")
@shared.processes_option
def sql(
    arguments: Sequence[str],
    topics: Sequence[str],
    as_of: int | None,
    isolation_level: str,
    mode: str,
    value_format: str | None,
    value_schema: str | None,
    value_message: str | None,
    schemas_topic: str | None,
    schema_registry: str | None,
    table_format: str | None,
    output: str | None,
    processes: int | None,
) -> ExitCode:
    """Answer queries in SQL over records, lag, transactions, segments and the rest."""
    from kafkalog.command_line.sql.answers import Answers, output_format, run_prompt
    from kafkalog.tables.database import opened_database
    from kafkalog.tables.decoded_source import ValueOptions

    paths, query = _divided(arguments)
    answers = Answers(output_format(table_format, output), output, paths)
    options = {"mode": mode, "isolationLevel": isolation_level}
    if topics:
        options["subscribe"] = ",".join(topics)
    if as_of is not None:
        options["asOf"] = str(as_of)
    values = ValueOptions(
        value_format,
        value_schema,
        value_message,
        schemas_topic=schemas_topic,
        schema_registry=schema_registry,
    )
    database = opened_database(paths, options, values, processes)
    if query is None and sys.stdin.isatty():
        run_prompt(database, answers)
    else:
        answers.write(database, sys.stdin.read() if query is None else query)
    return ExitCode.DONE


def _divided(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the paths and the query, None without one: the last argument, if it has several words
    but not a path."""
    *paths, last = arguments or [""]
    query = last if len(last.split()) > 1 and not os.path.exists(last) else None
    if query is None and last:
        paths.append(last)
    if not paths:
        paths = GivenPath().split_envvar_value(os.environ.get(shared.LOG_DIRS_VARIABLE, ""))
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'", click.get_current_context())
    return paths, query
