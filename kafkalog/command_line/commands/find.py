"""`kafkalog find`: find records by key, value, time or size, and show what was searched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from kafkalog.command_line.answer_output import table_cells
from kafkalog.command_line.terminal import (
    has_chosen_columns,
    printed_columns,
    table_format_option,
    write_table,
)
from kafkalog.errors import RefusedOptionError
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.views.options.contradictions import refuse_inverted_times
from kafkalog.words import time_text

_PLACE = ("topic", "partition", "offset", "timestamp_ms")
_SEEN = ("value_size", "visibility", "position")
# With --largest the bytes of key and value.
_LARGEST = "record_size"
# Of text the beginnings, without headers, and how many replicas have the record, of which brokers.
_PAYLOADS, _HEADERS, _COPIES = ("key", "value"), "headers", ("copies", "broker_ids")
_SEARCHED = (
    *("topic", "partition", "first_offset", "end_offset", "log_start", "segments", "bytes"),
    *("records", "matches", "damaged_ranges", "damaged_bytes", "is_compacted"),
    "undecoded",
)
_DAMAGED = ("topic", "partition", "file", "position", "size", "fault", "first_offset")
_TEXTS: dict[str, Callable[[Any], str]] = {"timestamp_ms": time_text}

_EPILOG = f"""\
{shared.PATHS_MEANING}
\b
The last records come first: in a partition by offset, so the first row of a key
that is in one partition has its value. VISIBILITY says whether consumers see a
record: visible, aborted, open transaction, behind open transaction, above high
watermark, below log start, not in the best replica, control or unknown. As text,
replicas that have a record in the same batch have one row, and COPIES and
BROKER-IDS say how many and of which brokers; --format json and csv have a row for
each. KEY and VALUE are the beginnings as text, whole in JSON and CSV, with the
headers: bytes that are not UTF-8 are base64 there. A summary of what was searched
goes to stderr, with JSON also to stdout. Exit codes: 0 found, 1 not found.

\b
Examples:
  kafkalog find /data/kafka --topic orders --key customer-17
  kafkalog find /data/kafka --topic orders --key hex:00000011 --partitioner java
  kafkalog find /data/kafka --topic orders --value-contains 4711 --limit 5
  kafkalog find /data/kafka --largest 10
  kafkalog find /data/kafka --from-time 2026-11-21T12:00:00Z --until-time 2026-11-21T12:01:00Z
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option("Search only this topic; repeatable.")
@shared.partition_option()
@shared.from_time_option("Only records of this time or later")
@shared.until_time_option("Only records before this time")
@click.option(
    "--key", "-k", metavar="KEY", help="Find records with this key: text, hex:… or base64:…."
)
@click.option(
    "--value-contains",
    "contained",
    metavar="BYTES",
    help="Find records whose value contains these bytes: text, hex:… or base64:….",
)
@click.option("--header", metavar="NAME=VALUE", help="Find records with this header.")
@click.option(
    "--value-path",
    metavar="PATH=VALUE",
    help="Find records whose value, decoded, has this at a path: '$.customer.id=cust-17'.",
)
@click.option(
    "--schema-registry",
    metavar="URL|DIR",
    help="With --value-path: decode what a registry's serializers have written by the schemas of "
    "the registry at this URL, or of files named by their ids, such as DIR/7.avsc.",
)
@click.option(
    "--partitioner",
    type=click.Choice(("java",)),
    help="Search only the partition that the default partitioner of Java producers chooses for the "
    "key.",
)
@click.option(
    "--partition-count",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --partitioner and one --topic: the number of its partitions, if some are missing "
    "here.",
)
@click.option(
    "--largest",
    metavar="N",
    type=click.IntRange(min=1),
    help="Print the N largest records in place of the last ones, by the bytes of key and value.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Print the last N records.",
)
@table_format_option
@shared.processes_option
def find(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    from_ms: int | None,
    until_ms: int | None,
    key: str | None,
    contained: str | None,
    header: str | None,
    value_path: str | None,
    schema_registry: str | None,
    partitioner: str | None,
    partition_count: int | None,
    largest: int | None,
    limit: int,
    table_format: str,
    processes: int | None,
) -> ExitCode:
    """Find records by key, value, time or size, and show what was searched."""
    from kafkalog.command_line.dump.request import bytes_given, timestamps_given
    from kafkalog.command_line.find_search import FindRequest, logs_to_search, search
    from kafkalog.inspection.erasure.identifiers import Kind, of_option
    from kafkalog.inspection.erasure.registered_values import registered_values

    is_text = table_format == "text"
    sizes = () if largest is None else (_LARGEST,)
    names: tuple[str, ...] = (*_PLACE, *_PAYLOADS, _HEADERS, *_SEEN, *sizes, "file")
    if is_text:
        names = (*_PLACE, *_PAYLOADS, *_SEEN, *sizes, *_COPIES, "file")
    every = ("type", *names, *_SEARCHED, *_DAMAGED) if table_format == "json" else names
    printed_columns(tuple(dict.fromkeys(every)))
    refuse_inverted_times(from_ms, until_ms)
    request = FindRequest(
        topics=tuple(topics),
        partitions=tuple(partitions),
        key=bytes_given("--key", key),
        contained=bytes_given("--value-contains", contained),
        header=None if header is None else of_option("--header", Kind.HEADER, header),
        at_path=(
            None if value_path is None else of_option("--value-path", Kind.VALUE_PATH, value_path)
        ),
        decoders=() if schema_registry is None else (registered_values(schema_registry),),
        timestamps=timestamps_given(from_ms, until_ms),
        by_partitioner=partitioner is not None,
        partition_count=partition_count,
        limit=limit,
        largest=largest,
        for_people=is_text,
    )
    if not request.names_records and request.timestamps is None and largest is None:
        raise click.UsageError(
            "Missing option '--key', '--value-contains', '--header', '--value-path', "
            "'--from-time', '--until-time' or '--largest'."
        )
    if schema_registry is not None and value_path is None:
        raise RefusedOptionError("--schema-registry", "only with --value-path")
    if request.by_partitioner and request.key is None:
        raise RefusedOptionError("--partitioner", "only with --key")
    if partition_count is not None and (len(set(topics)) != 1 or not request.by_partitioner):
        raise RefusedOptionError("--partition-count", "only with --partitioner and one --topic")
    result = search(logs_to_search(paths, request), request, processes=processes)
    if table_format == "json":
        found = (table_cells(row, table_format) for row in result.found)
        tables: tuple[tuple[str, Sequence[str], Iterable[Sequence[object]]], ...] = (
            ("found", names, found),
            ("searched", _SEARCHED, result.searched),
            ("damage", _DAMAGED, result.damages),
        )
        for kind, columns, rows in tables:
            write_table(("type", *columns), ((kind, *row) for row in rows), "json")
    elif not is_text:
        write_table(names, (table_cells(row, table_format) for row in result.found), table_format)
    elif result.shown:
        shown = [*result.found]
        if not result.has_copies_together and not has_chosen_columns():
            names = tuple(name for name in names if name not in _COPIES)
            shown = [(*row[: -len(_COPIES) - 1], row[-1]) for row in shown]
        write_table(names, shown, table_format, texts=_TEXTS)
    return ExitCode.DONE if result.matches else ExitCode.FINDINGS
