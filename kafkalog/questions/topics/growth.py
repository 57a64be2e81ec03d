"""What came into each topic in a period, how fast, and from which producers?

By the headers of batches; a batch counts by its largest timestamp. Rules: docs/command-line.md
F1161 and F1162.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.table_rows import grouped
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.questions.transactions import transactional_ids
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.views.engine import AskedView, Batches, Views

BY_BROKER, BY_PRODUCER = "broker", "producer"
_APPEND_TIME = "LogAppendTime"
_NO_PRODUCER = -1
_COLUMNS = (
    *("topic", "partition", "size", "records", "max_timestamp_ms", "timestamp_type"),
    *("producer_id", "producer_epoch", "is_control", "fault"),
)
_SUMS = {
    "batches": "sum",
    "bytes": "sum",
    "records": "sum",
    "first_timestamp_ms": "min",
    "last_timestamp_ms": "max",
}
# Rows with a second are the sums of a topic in it, the others those of a producer in a partition.
_FOUND = pa.schema(
    [
        *(("topic", pa.string()), ("partition", pa.int32()), ("producer_id", pa.int64())),
        *(("producer_epoch", pa.int16()), ("clock", pa.string()), ("second", pa.int64())),
        *(("batches", pa.int64()), ("bytes", pa.int64()), ("records", pa.int64())),
        *(("first_timestamp_ms", pa.int64()), ("last_timestamp_ms", pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True)
class GrowthRequest:
    """The period, None for an open end, and the logs that are looked at, where these are not
    all."""

    from_ms: int | None = None
    until_ms: int | None = None
    logs: Sequence[PartitionLog] | None = None


@dataclass(frozen=True, slots=True)
class Growth:
    """What came: a row per topic, per partition, or per producer in a topic."""

    topics: list[dict[str, Any]]
    partitions: list[dict[str, Any]]
    producers: list[dict[str, Any]]


def growth(views: Views, request: GrowthRequest) -> Growth:
    """Return what came in the period, by the best replica of each partition."""
    given = views.logs if request.logs is None else request.logs
    logs = [log for log in best_logs(given) if log.topic != CLUSTER_METADATA]
    reduce = _Summed(request.from_ms, request.until_ms)
    (found,) = views.rows(AskedView("batches", _COLUMNS, reduce, _FOUND, logs=logs))
    every = grouped([found.table], _FOUND, _SUMS)
    is_total = pc.is_null(every["second"])
    totals = every.filter(is_total)
    by_producer = {
        producer_id: state["transactional_id"]
        for (_, producer_id), state in transactional_ids(views)[0].by_producer().items()
    }
    peaks = _peaks(every.filter(pc.invert(is_total)))

    def peak(row: dict[str, Any]) -> tuple[int | None, int | None]:
        return peaks.get(row["topic"], (None, None))

    return Growth(
        [*_rows(totals, ("topic",), by_producer, peak)],
        [*_rows(totals, ("topic", "partition"), by_producer)],
        [*_rows(totals, ("topic", "producer_id", "producer_epoch"), by_producer)],
    )


@dataclass(frozen=True, slots=True)
class _Summed:
    """Sums up the batches of a task that lie in the period."""

    from_ms: int | None
    until_ms: int | None

    def __call__(self, batches: Batches) -> Batches:
        kept = _FOUND.empty_table()
        for batch in batches:
            found = self._found(pa.Table.from_batches([batch]))
            kept = grouped([kept, found, _seconds(found)], _FOUND, _SUMS)
        yield from kept.to_batches()

    def _found(self, rows: pa.Table) -> pa.Table:
        times = rows["max_timestamp_ms"]
        is_meant = pc.is_null(rows["fault"])
        if self.from_ms is not None:
            is_meant = pc.and_(is_meant, pc.greater_equal(times, self.from_ms))
        if self.until_ms is not None:
            is_meant = pc.and_(is_meant, pc.less(times, self.until_ms))
        rows = rows.filter(is_meant)
        count = len(rows)
        is_control = pc.fill_null(rows["is_control"], False)
        records = pc.if_else(is_control, 0, rows["records"])
        clock = pc.if_else(pc.equal(rows["timestamp_type"], _APPEND_TIME), BY_BROKER, BY_PRODUCER)
        times = rows["max_timestamp_ms"]
        columns = [
            *(rows["topic"], rows["partition"]),
            pc.fill_null(rows["producer_id"], _NO_PRODUCER),
            pc.fill_null(rows["producer_epoch"], _NO_PRODUCER),
            pc.fill_null(clock, BY_PRODUCER),
            pa.nulls(count, pa.int64()),
            pc.if_else(is_control, 0, 1),
            *(rows["size"], records, times, times),
        ]
        return pa.Table.from_arrays(columns, names=_FOUND.names).cast(_FOUND)


def _seconds(found: pa.Table) -> pa.Table:
    """Return the rows by topic and second."""
    seconds = pc.divide(found["last_timestamp_ms"], 1000)
    count = len(found)
    for name, column in (
        ("partition", pa.nulls(count, pa.int32())),
        ("producer_id", pa.nulls(count, pa.int64())),
        ("producer_epoch", pa.nulls(count, pa.int16())),
        ("clock", pa.nulls(count, pa.string())),
        ("second", seconds),
    ):
        found = found.set_column(found.schema.get_field_index(name), name, column)
    has_time = pc.greater_equal(found["last_timestamp_ms"], 0)
    return found.filter(has_time).cast(_FOUND)


def _peaks(seconds: pa.Table) -> dict[str, tuple[int, int]]:
    """Return the most bytes in a second of each topic, and when that second began."""
    found: dict[str, tuple[int, int]] = {}
    in_order = seconds.sort_by([("bytes", "descending"), ("second", "ascending")])
    highest = in_order.group_by("topic", use_threads=False).aggregate(
        [("bytes", "first"), ("second", "first")]
    )
    for row in highest.to_pylist():
        found[row["topic"]] = row["bytes_first"], row["second_first"] * 1000
    return found


def _rows(
    totals: pa.Table,
    names: Sequence[str],
    by_producer: dict[int, str],
    peak: Callable[[dict[str, Any]], tuple[int | None, int | None]] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each value of the named columns, what came most first."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in totals.to_pylist():
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    made = [_row(dict(zip(names, key, strict=True)), rows) for key, rows in found.items()]
    for row in sorted(made, key=lambda row: (-row["bytes"], *map(str, row.values()))):
        row["transactional_id"] = by_producer.get(row["last_producer_id"])
        if peak is not None:
            row["peak_bytes_per_second"], row["peak_ms"] = peak(row)
        yield row


def _row(named: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    batches, size = (sum(row[name] for row in rows) for name in ("batches", "bytes"))
    counts = [row["records"] for row in rows]
    records = None if None in counts else sum(counts)
    is_known = records is not None and batches > 0
    last = max(rows, key=lambda row: row["last_timestamp_ms"])
    has_producer = last["producer_id"] != _NO_PRODUCER
    if "producer_id" in named and not has_producer:
        named = {**named, "producer_id": None, "producer_epoch": None}
    return {
        **named,
        "partitions": len({row["partition"] for row in rows}),
        "bytes": size,
        "records": records,
        "batches": batches,
        "records_per_batch": round((records or 0) / batches, 1) if is_known else None,
        "first_timestamp_ms": min(row["first_timestamp_ms"] for row in rows),
        "last_timestamp_ms": last["last_timestamp_ms"],
        "clock": ", ".join(sorted({row["clock"] for row in rows})),
        "last_producer_id": last["producer_id"] if has_producer else None,
        "last_producer_epoch": last["producer_epoch"] if has_producer else None,
    }
