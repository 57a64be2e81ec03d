"""`kafkalog keys`: how many keys topics have, which are heavy, and which records repeat others."""

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
from kafkalog.command_line.terminal import printed_columns
from kafkalog.exit_codes import ExitCode
from kafkalog.views.options import click_options as shared
from kafkalog.words import size_text

_TABLE, _HEAVY = "key_usage", "heavy_keys"
_KINDS = ("topic", "partition", "key")
_COUNTS = (
    *("records", "distinct_keys", "keyless_records", "tombstones", "repeated_records"),
    *("resent_records", "bytes", "heaviest_key_share", "largest_record_bytes"),
)
_OF_TOPIC = ("topic", "partitions", *_COUNTS)
_OF_PARTITION = ("topic", "partition", *_COUNTS, "largest_record_offset")
_OF_KEY = ("topic", "partition", "key", "records", "bytes", "share")


def _share_text(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("bytes", "largest_record_bytes"), size_text),
    **dict.fromkeys(("share", "heaviest_key_share"), _share_text),
}

_EPILOG = f"""\
{shared.PATHS_MEANING}
The command reads all keys and values, of topics of brokers only if --topic names them. BYTES are
those of keys and values, uncompressed. REPEATED-RECORDS have the key and value of a record shortly
before; RESENT-RECORDS also have its time, and no idempotent producer wrote them: retries.

\b
Examples:
  kafkalog keys /var/lib/kafka/data
  kafkalog keys /var/lib/kafka/data --by key --topic orders --show 10
  kafkalog keys /var/lib/kafka/data --by partition --format json
"""


@click.command(epilog=_EPILOG)
@shared.paths_argument
@shared.topic_option()
@shared.partition_option()
@shared.by_option(
    _KINDS, "A row per topic, per partition, or per key, those with most bytes of a topic first."
)
@shown_rows_option("rows")
@answer_output_options
@shared.processes_option
def keys(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    by: str,
    show: int,
    output: AnswerOutput,
    processes: int | None,
) -> ExitCode:
    """Show how many keys topics have, which are heavy, and which records repeat others."""
    from kafkalog.questions.topics.key_usage import KeyUsageRequest, key_usage

    table_format = output.table_format
    columns = {
        "topic": lambda: printed_columns(_OF_TOPIC),
        "partition": lambda: answer_columns(_TABLE, _OF_PARTITION, table_format),
        "key": lambda: answer_columns(_HEAVY, _OF_KEY, table_format),
    }[by]()
    found = logs_of_topics(paths)
    logs = logs_of_topics(paths, topics, partitions, found) if topics or partitions else None
    place = output.tables_of_logs([_TABLE, _HEAVY], paths, found)
    with views_with_progress(paths, found, processes, selected=logs) as views:
        usage = key_usage(views, KeyUsageRequest(logs))
    rows = {"topic": usage.topics, "partition": [*usage.partitions], "key": [*usage.heavy]}[by]
    write_answer(columns, rows, table_format, show=show, texts=_TEXTS)
    write_words(usage.words(), table_format)
    save_tables(place, {_TABLE: usage.partitions, _HEAVY: usage.heavy})
    return ExitCode.DONE
