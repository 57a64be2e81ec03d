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
from kafkalog.format.batch_header import NO_VALUE
from kafkalog.inspection.logs.replica_facts import best_logs
from kafkalog.inspection.partitions.newest_times import newest_time_ms, nothing_words
from kafkalog.questions.transactions import TransactionSettings, transactional_ids
from kafkalog.storage.names import CLUSTER_METADATA
from kafkalog.storage.partition_log import PartitionLog
from kafkalog.storage.reading.offset_ranges import MAX_FUTURE_MS
from kafkalog.views.engine import AskedView, Batches, Views
from kafkalog.views.options.contradictions import refuse_inverted_times
from kafkalog.words import counted, first_names

BY_BROKER, BY_PRODUCER = "broker", "producer"
_APPEND_TIME = "LogAppendTime"
_NO_PRODUCER = -1
_MOST_NAMES = 5
# Batches to name: those left out, and those that count though their times are still to come.
_DAMAGED, _WITHOUT_TIME, _AHEAD = "damaged", "without_time", "ahead"
_NAMED = {
    _DAMAGED: ("damaged", ": kafkalog check says what is wrong"),
    _WITHOUT_TIME: ("without a time", ""),
}
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
# Rows with a second are the sums of a topic in it, those to name have a reason, and the others are
# the sums of a producer in a partition, apart from those of the markers that end its transactions.
_FOUND = pa.schema(
    [
        *(("topic", pa.string()), ("partition", pa.int32()), ("producer_id", pa.int64())),
        *(("producer_epoch", pa.int16()), ("clock", pa.string()), ("second", pa.int64())),
        *(("named", pa.string()), ("is_control", pa.bool_())),
        *(("batches", pa.int64()), ("bytes", pa.int64()), ("records", pa.int64())),
        *(("first_timestamp_ms", pa.int64()), ("last_timestamp_ms", pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True)
class GrowthRequest:
    """The time of the question; the period, None for an open end; and the logs that are looked at,
    where these are not all."""

    now_ms: int
    from_ms: int | None = None
    until_ms: int | None = None
    logs: Sequence[PartitionLog] | None = None


@dataclass(frozen=True, slots=True)
class Growth:
    """What came: a row per topic, per partition, or per producer in a topic; and sentences about
    what does not count, or counts with doubt."""

    topics: list[dict[str, Any]]
    partitions: list[dict[str, Any]]
    producers: list[dict[str, Any]]
    words: list[str]


def growth(views: Views, request: GrowthRequest) -> Growth:
    """Return what came in the period, by the best replica of each partition."""
    given = views.logs if request.logs is None else request.logs
    logs = [log for log in best_logs(given) if log.topic != CLUSTER_METADATA]
    reduce = _Summed(request.from_ms, request.until_ms, request.now_ms + MAX_FUTURE_MS)
    refuse_inverted_times(request.from_ms, request.until_ms)
    (found,) = views.rows(AskedView("batches", _COLUMNS, reduce, _FOUND, logs=logs))
    every = grouped([found.table], _FOUND, _SUMS)
    is_named, has_second = pc.is_valid(every["named"]), pc.is_valid(every["second"])
    totals = every.filter(pc.invert(pc.or_(is_named, has_second)))
    ids, _ = transactional_ids(views, TransactionSettings(request.now_ms))
    by_producer = {
        producer_id: state["transactional_id"]
        for (_, producer_id), state in ids.by_producer().items()
    }
    peaks = _peaks(every.filter(has_second))

    def peak(row: dict[str, Any]) -> tuple[int | None, int | None]:
        return peaks.get(row["topic"], (None, None))

    return Growth(
        [*_rows(totals, ("topic",), by_producer, peak)],
        [*_rows(totals, ("topic", "partition"), by_producer)],
        [*_rows(totals, ("topic", "producer_id"), by_producer)],
        [
            *_words(every.filter(is_named).to_pylist()),
            *_nothing_words(totals, logs, request.now_ms),
        ],
    )


def _nothing_words(totals: pa.Table, logs: Sequence[PartitionLog], now_ms: int) -> list[str]:
    """Return where the newest records are, if nothing came in the period. Rule: F1352."""
    newest_ms = None if len(totals) else newest_time_ms(logs, now_ms)
    return [] if newest_ms is None else [nothing_words(newest_ms)]


def _words(named: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences about batches that are left out, or whose times are still to come."""
    for reason in (_DAMAGED, _WITHOUT_TIME, _AHEAD):
        rows = [row for row in named if row["named"] == reason]
        if not rows:
            continue
        topics = sorted({row["topic"] or "?" for row in rows})
        what = counted(sum(row["batches"] for row in rows), "batch")
        where = f"{counted(len(topics), 'topic')}: {first_names(topics, _MOST_NAMES)}"
        if reason == _AHEAD:
            yield (
                f"{what} counted with times ahead of the clock in {where}; --until-time now leaves "
                "them out"
            )
        else:
            words, hint = _NAMED[reason]
            yield f"not counted: {what} {words} in {where}{hint}"


@dataclass(frozen=True, slots=True)
class _Summed:
    """Sums up the batches of a task that lie in the period."""

    from_ms: int | None
    until_ms: int | None
    latest_ms: int

    def __call__(self, batches: Batches) -> Batches:
        kept = _FOUND.empty_table()
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            found = _summable(rows.filter(self._is_meant(rows)))
            kept = grouped([kept, found, _seconds(found), *self._named(rows)], _FOUND, _SUMS)
        yield from kept.to_batches()

    def _is_meant(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return whether each batch counts in the period; with a bound, one without a time does
        not."""
        times = rows["max_timestamp_ms"]
        is_meant = pc.is_null(rows["fault"])
        if self._has_bound:
            is_meant = pc.and_(is_meant, pc.invert(_is_without_time(rows)))
        if self.from_ms is not None:
            is_meant = pc.and_(is_meant, pc.greater_equal(times, self.from_ms))
        if self.until_ms is not None:
            is_meant = pc.and_(is_meant, pc.less(times, self.until_ms))
        return is_meant

    @property
    def _has_bound(self) -> bool:
        return self.from_ms is not None or self.until_ms is not None

    def _named(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield the batches to name, those of a reason in a table."""
        is_sound = pc.is_null(rows["fault"])
        is_ahead = pc.greater(rows["max_timestamp_ms"], self.latest_ms)
        reasons = {_DAMAGED: pc.invert(is_sound), _AHEAD: pc.and_(self._is_meant(rows), is_ahead)}
        if self._has_bound:
            reasons[_WITHOUT_TIME] = pc.and_(is_sound, _is_without_time(rows))
        for reason, is_named in reasons.items():
            found = _summable(rows.filter(is_named))
            place = _FOUND.get_field_index("named")
            yield found.set_column(place, "named", pa.array([reason] * len(found), pa.string()))


def _is_without_time(rows: pa.Table) -> pa.ChunkedArray:
    return pc.equal(pc.fill_null(rows["max_timestamp_ms"], NO_VALUE), NO_VALUE)


def _summable(rows: pa.Table) -> pa.Table:
    """Return batches in the columns that are summed up."""
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
        *(pa.nulls(count, pa.int64()), pa.nulls(count, pa.string()), is_control),
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
        ("is_control", pa.nulls(count, pa.bool_())),
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
    # Markers are written by brokers.
    written = [row for row in rows if not row["is_control"]] or rows
    last = max(written, key=lambda row: row["last_timestamp_ms"])
    has_producer = last["producer_id"] != _NO_PRODUCER
    # Since Kafka 4.0 a marker has the epoch that the producer goes on with.
    of_producer = (row for row in rows if row["producer_id"] == last["producer_id"])
    newest = max(of_producer, key=lambda row: row["last_timestamp_ms"])
    epoch = newest["producer_epoch"] if has_producer else None
    if "producer_id" in named:
        named = {
            **named,
            "producer_id": named["producer_id"] if has_producer else None,
            "producer_epoch": epoch,
        }
    return {
        **named,
        "partitions": len({row["partition"] for row in rows}),
        "bytes": size,
        "records": records,
        "batches": batches,
        "records_per_batch": round((records or 0) / batches, 1) if is_known else None,
        "first_timestamp_ms": min(row["first_timestamp_ms"] for row in written),
        "last_timestamp_ms": last["last_timestamp_ms"],
        "clock": ", ".join(sorted({row["clock"] for row in written})),
        "last_producer_id": last["producer_id"] if has_producer else None,
        "last_producer_epoch": epoch,
    }
