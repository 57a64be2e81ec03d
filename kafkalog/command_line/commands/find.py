"""`kafkalog find`: where a record is, or what was searched without finding it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from kafkalog.command_line.inputs import LOG_DIRS_MEANING, log_dirs_argument, partition_option
from kafkalog.command_line.parallel import processes_option
from kafkalog.command_line.terminal import table_format_option, write_table
from kafkalog.errors import OptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.words import time_text

_FOUND = (
    *("topic", "partition", "offset", "timestamp_ms", "value_size", "visibility", "position"),
    "file",
)
_SEARCHED = (
    *("topic", "partition", "first_offset", "end_offset", "log_start", "segments", "bytes"),
    *("records", "matches", "damaged_ranges", "damaged_bytes", "is_compacted"),
)
_DAMAGED = ("topic", "partition", "file", "position", "size", "fault", "first_offset")
_TEXTS: dict[str, Callable[[Any], str]] = {"timestamp_ms": time_text}

_EPILOG = f"""\
{LOG_DIRS_MEANING}
\b
The newest records come first; a value size of - is a tombstone. What was searched
stands on stderr, in JSON also as lines. Exit codes: 0 found, 1 not found.

\b
Examples:
  kafkalog find /data/kafka --topic orders --key customer-17
  kafkalog find /data/kafka --topic orders --key hex:00000011 --partitioner java
  kafkalog find /data/kafka --topic orders --value-contains 4711 --limit 5
"""


@click.command(epilog=_EPILOG)
@log_dirs_argument
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC",
    multiple=True,
    required=True,
    help="Search this topic; repeatable.",
)
@partition_option("Only this partition; repeatable.")
@click.option("--key", metavar="KEY", help="Exactly this key: text, hex:… or base64:….")
@click.option("--value-contains", "contained", metavar="BYTES", help="These bytes in the value.")
@click.option(
    "--partitioner",
    type=click.Choice(("java",)),
    help="Search only the partition that Java's default partitioner gives the key.",
)
@click.option(
    "--partition-count",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --partitioner and one --topic: how many partitions it has, where not all are here.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="So many of the newest.",
)
@table_format_option
@processes_option
def find(
    log_dirs: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    key: str | None,
    contained: str | None,
    partitioner: str | None,
    partition_count: int | None,
    limit: int,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """Find records by their key or value, or tell what was searched without finding any."""
    from kafkalog.command_line.dump.request import bytes_given
    from kafkalog.command_line.find_search import Asked, asked_logs, search

    asked = Asked(
        topics=tuple(topics),
        partitions=tuple(partitions),
        key=bytes_given("--key", key),
        contained=bytes_given("--value-contains", contained),
        by_partitioner=partitioner is not None,
        partition_count=partition_count,
        limit=limit,
    )
    if asked.key is None and asked.contained is None:
        raise click.UsageError("What to find is missing: --key KEY, or --value-contains BYTES.")
    if asked.by_partitioner and asked.key is None:
        raise OptionError("--partitioner", partitioner, "together with --key")
    if partition_count is not None and (len(set(topics)) > 1 or not asked.by_partitioner):
        allowed = "with --partitioner and one --topic"
        raise OptionError("--partition-count", str(partition_count), allowed)
    result = search(asked_logs(log_dirs, asked), asked, processes=processes)
    if table_format == "json":
        write_table(("type", *_FOUND), [("found", *row) for row in result.found], "json")
        write_table(("type", *_SEARCHED), [("searched", *row) for row in result.searched], "json")
        write_table(("type", *_DAMAGED), [("damage", *row) for row in result.damages], "json")
    elif result.found or table_format == "csv":
        write_table(_FOUND, result.found, table_format, texts=_TEXTS)
    return ExitCode.DONE if result.matches else ExitCode.FINDINGS
