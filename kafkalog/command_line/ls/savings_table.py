"""The table of `kafkalog ls --savings`. Rule: docs/command-line.md F592."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kafkalog.command_line.ls.storage_rows import StoredLog
from kafkalog.command_line.terminal import print_text, write_table
from kafkalog.inspection.logs.savings import Saving, savings
from kafkalog.storage.log_dir.topic_configs import DELETE_POLICY, TopicConfigs
from kafkalog.storage.names import BROKERS_TOPICS
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.oldest_log import is_oldest_layout
from kafkalog.views.parallel import in_order
from kafkalog.words import size_text

SAVING_COLUMNS = ("topic", "change", "size", "after", "saves", "error", "sampled_bytes")
_TEXTS: dict[str, Callable[[Any], str]] = dict.fromkeys(
    ("size", "after", "saves", "error", "sampled_bytes"), size_text
)
_DAY_MS = 86_400_000
_RETENTION_DAYS = (1, 7, 30)

_Configs = Callable[[PartitionLog], TopicConfigs]


def saving_rows(
    logs: Sequence[StoredLog],
    configs: _Configs,
    most_bytes: int,
    *,
    processes: int,
    on_done: Callable[[int], None],
) -> list[tuple[Any, ...]]:
    """Return a row for each change that saves something, what saves most first. `on_done` is called
    with the bytes of each topic."""
    by_topic: dict[str, list[StoredLog]] = defaultdict(list)
    for stored in logs:
        topic = stored.log.topic
        if topic is not None and topic not in BROKERS_TOPICS and not is_oldest_layout(stored.log):
            by_topic[topic].append(stored)

    def of_topic(topic: str) -> Iterator[tuple[str, Saving]]:
        found = by_topic[topic]
        segments = [segment for stored in found for segment, _ in stored.segments]
        for saving in (*savings(segments, most_bytes, topic), *_by_retention(found, configs)):
            yield topic, saving

    sizes = {
        topic: sum(storage.size for stored in found for _, storage in stored.segments)
        for topic, found in by_topic.items()
    }
    found = in_order(
        of_topic, list(by_topic), processes=processes, on_done=lambda topic: on_done(sizes[topic])
    )
    rows: list[tuple[Any, ...]] = [
        (topic, change, size, after, size - after, error, sampled)
        for topic, (change, size, after, error, sampled) in found
        if after < size
    ]
    rows.sort(key=lambda row: (row[3] - row[2], row[0], row[1]))
    return rows


def write_savings(rows: Sequence[Sequence[Any]], table_format: str) -> None:
    """Write the rows, and after text what each change saves in all topics."""
    write_table(SAVING_COLUMNS, rows, table_format, texts=_TEXTS)
    if table_format == "text" and len({row[0] for row in rows}) > 1:
        print_text(_in_all(rows))


def _in_all(rows: Sequence[Sequence[Any]]) -> str:
    saved: dict[str, int] = defaultdict(int)
    for _, change, _, _, saves, *_ in rows:
        saved[change] += saves
    most_first = sorted(saved, key=lambda change: (-saved[change], change))
    words = "; ".join(f"{change} saves {size_text(saved[change])}" for change in most_first)
    return f"in all topics: {words}"


def _by_retention(logs: Sequence[StoredLog], configs: _Configs) -> Iterator[Saving]:
    """Yield what a shorter retention.ms would delete now: whole segments, and not the last."""
    settings = configs(logs[0].log).retention(logs[0].log.topic)
    policy, limit_ms = settings.cleanup_policy.value, settings.retention_ms.value
    if policy is not None and DELETE_POLICY not in policy:
        return
    size = sum(storage.size for stored in logs for _, storage in stored.segments)
    now_ms = time.time_ns() // 1_000_000
    for days in _RETENTION_DAYS:
        if limit_ms is not None and 0 <= limit_ms <= days * _DAY_MS:
            return
        freed = sum(_expired_bytes(stored, now_ms - days * _DAY_MS) for stored in logs)
        yield Saving(f"retention.ms={days * _DAY_MS}", size, size - freed, 0, size)


def _expired_bytes(stored: StoredLog, before_ms: int) -> int:
    """Return the bytes of the first segments up to one with a record that is not so old."""
    freed = 0
    for _, storage in stored.segments[:-1]:
        if storage.max_timestamp_ms is None or storage.max_timestamp_ms >= before_ms:
            break
        freed += storage.size
    return freed
