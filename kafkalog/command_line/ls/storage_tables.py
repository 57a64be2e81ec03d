"""The tables of `kafkalog ls`: by topic, by partition, by segment."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kafkalog.command_line.ls.storage_rows import StoredLog, segment_times
from kafkalog.command_line.terminal import (
    has_chosen_columns,
    print_note,
    print_text,
    printed_columns,
    write_table,
)
from kafkalog.inspection.metadata.assigned_partitions import Assignment
from kafkalog.inspection.partitions.segment_storage import Storage, summed_storage
from kafkalog.inspection.partitions.wrong_times import wrong_time_lines
from kafkalog.storage.log_dir.disk_usage import DiskUsage
from kafkalog.storage.reading.log_bounds import EndRule, log_bounds
from kafkalog.words import counted, first_names, size_text, time_text

_HELD = (
    "records",
    "control_records",
    "batches",
    "first_timestamp_ms",
    "max_timestamp_ms",
    "codecs",
)
# A topic has it where partitions are there several times.
_COPIES = ("copies",)
_NAMES = {
    "topic": ("topic", "partitions", *_COPIES, "segments", "size", "side_bytes", "total_size"),
    "partition": (
        *("topic", "partition", "broker_id", "segments", "size", "side_bytes", "total_size"),
        *("start_offset", "end_offset"),
    ),
    "segment": ("topic", "partition", "base_offset", "size", "first_offset", "last_offset"),
}
_USAGE = ("directory", "kind", "files", "size", "allocated")
# Where the metadata says that a partition is.
_ASSIGNED = ("leader", "replicas")
_PLACE = {"topic": (), "partition": ("directory",), "segment": ("file",)}
_MOST_NAMED = 5
# Columns that need the batch headers.
_BY_HEADERS = ("end_offset", "first_offset", "last_offset", *_HELD)
_TEXTS: dict[str, Callable[[Any], str]] = {
    "size": size_text,
    "side_bytes": size_text,
    "total_size": size_text,
    "allocated": size_text,
    "first_timestamp_ms": time_text,
    "max_timestamp_ms": time_text,
    "ratio": lambda ratio: f"{ratio:.2f}",
}

_Row = dict[str, Any]
# What is unknown comes last.
_ORDERS: dict[str, Callable[[_Row], tuple[bool, int]]] = {
    "size": lambda row: (False, -row["total_size"]),
    "records": lambda row: (row["records"] is None, -(row["records"] or 0)),
    "time": lambda row: (row["max_timestamp_ms"] is None, row["max_timestamp_ms"] or 0),
}


def storage_columns(by: str, *, is_quick: bool, is_deep: bool) -> tuple[str, ...]:
    """Return all columns of the table."""
    if by == "kind":
        return _USAGE
    ratio = ("ratio",) if is_deep else ()
    names = (*_NAMES[by], *(_ASSIGNED if by == "partition" else ()), *_HELD, *ratio, *_PLACE[by])
    return tuple(name for name in names if not is_quick or name not in _BY_HEADERS)


def write_storage(
    logs: Sequence[StoredLog],
    by: str,
    sort: str,
    table_format: str,
    known: Mapping[tuple[str | None, str, int], Assignment],
    *,
    is_quick: bool,
    is_deep: bool,
) -> None:
    """Write the table with a row per topic, partition or segment in the order `sort`, and which
    times cannot be right (F1248). `known` are the assignments of partitions, if there are any."""
    rows = list(_ROWS[by](logs))
    names = printed_columns(storage_columns(by, is_quick=is_quick, is_deep=is_deep))
    if not has_chosen_columns():
        has_copies = any(row.get("copies") != row.get("partitions") for row in rows)
        left_out = (*(() if known else _ASSIGNED), *(() if has_copies else _COPIES))
        names = tuple(name for name in names if name not in left_out)
    if sort != "name":
        rows.sort(key=_ORDERS[sort])
    for row in rows:
        if by == "partition":
            found = known.get((row["cluster_id"], row["topic"], row["partition"]))
            row["leader"], row["replicas"] = (None, None) if found is None else found
            if found is not None and table_format != "json":
                row["replicas"] = ",".join(map(str, found.replicas))
        codecs = row["codecs"]
        if table_format != "json" and isinstance(codecs, dict):
            row["codecs"] = _codecs_text(codecs)
    write_table(names, [[row[name] for name in names] for row in rows], table_format, texts=_TEXTS)
    put = print_text if table_format == "text" else print_note
    for line in (
        *_below_start_lines(logs),
        *wrong_time_lines(segment_times(logs), time.time_ns() // 1_000_000),
    ):
        put(line)


def _below_start_lines(logs: Sequence[StoredLog]) -> Iterator[str]:
    """Yield a line about what files have below log starts, which RECORDS counts and consumers do
    not get. Rule: docs/command-line.md F1390."""
    below: dict[str, int] = {}
    for stored in logs:
        first = next((found.first_offset for _, found in stored.segments), None)
        last = summed_storage([found for _, found in stored.segments]).last_offset
        if first is not None and last is not None:
            start = log_bounds(stored.log, EndRule.LOG_END).start_offset
            offsets = min(start, last + 1) - first
            below[stored.log.name] = max(offsets, below.get(stored.log.name, 0))
    found = {name: offsets for name, offsets in below.items() if offsets > 0}
    if found:
        total = counted(sum(found.values()), "offset")
        yield (
            f"below the log start: {total} of {first_names([*found], _MOST_NAMED)}: RECORDS counts "
            "their records in the files; consumers do not get these, and sql and export leave them "
            "out"
        )


def write_usage(usages: Sequence[DiskUsage], sort: str, table_format: str) -> None:
    """Write the table with a row per kind of file in each directory."""
    if sort == "size":
        usages = sorted(usages, key=lambda usage: -usage.size)
    write_table(_USAGE, usages, table_format, texts=_TEXTS)


def _codecs_text(codecs: dict[str, int]) -> str | None:
    """Return the codecs by their bytes, with their shares if there are several."""
    total = sum(codecs.values())
    ordered = sorted(codecs, key=lambda name: -codecs[name])
    if len(ordered) < 2:
        return "".join(ordered) or None
    return ", ".join(f"{name} {codecs[name] / total:.0%}" for name in ordered)


def _held(storage: Storage, side_bytes: int = 0) -> _Row:
    return {
        "size": storage.size,
        "side_bytes": side_bytes,
        "total_size": storage.size + side_bytes,
        "records": storage.records,
        "control_records": storage.control_records,
        "batches": storage.batches,
        "first_timestamp_ms": storage.first_timestamp_ms,
        "max_timestamp_ms": storage.max_timestamp_ms,
        "codecs": storage.codec_bytes,
        "ratio": storage.ratio,
    }


def _topics(logs: Sequence[StoredLog]) -> Iterator[_Row]:
    by_topic: dict[str | None, list[StoredLog]] = defaultdict(list)
    for stored in logs:
        by_topic[stored.log.topic].append(stored)
    for topic, found in by_topic.items():
        storages = [storage for stored in found for _, storage in stored.segments]
        yield {
            "topic": topic,
            "partitions": len({stored.log.partition for stored in found}),
            "copies": len(found),
            "segments": len(storages),
            **_held(summed_storage(storages), sum(stored.side_bytes for stored in found)),
        }


def _partitions(logs: Sequence[StoredLog]) -> Iterator[_Row]:
    for stored in logs:
        storage = summed_storage([found for _, found in stored.segments])
        start = log_bounds(stored.log, EndRule.LOG_END).start_offset
        last = storage.last_offset
        yield {
            "topic": stored.log.topic,
            "partition": stored.log.partition,
            "broker_id": stored.log.log_dir.broker_id,
            "cluster_id": stored.log.log_dir.cluster_id,
            "segments": len(stored.segments),
            "start_offset": start,
            "end_offset": start if last is None else max(start, last + 1),
            "directory": stored.log.path,
            **_held(storage, stored.side_bytes),
        }


def _segments(logs: Sequence[StoredLog]) -> Iterator[_Row]:
    for stored in logs:
        for segment, storage in stored.segments:
            yield {
                "topic": stored.log.topic,
                "partition": stored.log.partition,
                "base_offset": segment.base_offset,
                "first_offset": storage.first_offset,
                "last_offset": storage.last_offset,
                "file": segment.path,
                **_held(storage),
            }


_ROWS = {"topic": _topics, "partition": _partitions, "segment": _segments}
