"""The tables of `kafkalog ls` about a period: what came, how fast, and from which producers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from kafkalog.command_line.answer_output import table_rows, write_words
from kafkalog.command_line.inputs import logs_of_topics, views_with_progress
from kafkalog.command_line.terminal import printed_columns, write_table
from kafkalog.questions.topics.growth import GrowthRequest, growth
from kafkalog.words import size_text, time_text

_CAME = ("bytes", "records", "batches", "records_per_batch")
_TIMES = ("first_timestamp_ms", "last_timestamp_ms")
_LAST = ("clock", "last_producer_id", "last_producer_epoch", "transactional_id")
GROWTH_COLUMNS = {
    "topic": (
        *("topic", "partitions", *_CAME, "peak_bytes_per_second", "peak_ms", *_TIMES, *_LAST),
    ),
    "partition": ("topic", "partition", *_CAME, *_TIMES, *_LAST),
    "producer": (
        *("topic", "producer_id", "producer_epoch", "transactional_id", "partitions", *_CAME),
        *_TIMES,
    ),
}
_TEXTS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("bytes", "peak_bytes_per_second"), size_text),
    **dict.fromkeys((*_TIMES, "peak_ms"), time_text),
}


def write_growth(
    paths: Sequence[str],
    topics: Sequence[str],
    partitions: Sequence[int],
    period: tuple[int | None, int | None],
    by: str,
    table_format: str,
    processes: int | None,
) -> None:
    """Write what came in a period, a row per topic, partition or producer in a topic."""
    names = printed_columns(GROWTH_COLUMNS[by])
    logs = logs_of_topics(paths)
    selected = logs_of_topics(paths, topics, partitions, logs)
    now_ms = time.time_ns() // 1_000_000
    with views_with_progress(paths, logs, processes, selected=selected) as views:
        found = growth(views, GrowthRequest(now_ms, *period, selected))
    rows = {"topic": found.topics, "partition": found.partitions, "producer": found.producers}[by]
    write_table(names, table_rows(rows, names, table_format), table_format, texts=_TEXTS)
    if found.words:
        write_words(found.words, table_format)
