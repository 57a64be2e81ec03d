"""Traffic, compression and sizes of batches, from view `batches`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.columns.arrays import fixed_width, integers, of_values
from kafkalog.columns.table_rows import grouped
from kafkalog.report.contents import BatchesSection, Row, as_rows
from kafkalog.report.time_grid import TimeGrid, grid_over
from kafkalog.views.engine import AskedView, Batches, Rows

# Calendars of plots end before the year 10000: a time that is later is none.
_NO_YEAR_MS = 253_402_300_800_000
_TIME = "max_timestamp_ms"
_COLUMNS = (
    *("topic", "file", "size", "uncompressed_size", "records", "compression", _TIME),
    "is_control",
)
# A task's times become so many, at equal distances in their order.
_KEPT_TIMES = 1001
_TIMES = pa.schema([("time", pa.int64()), ("weight", pa.float64())])
_SUMS = ("batches", "records", "bytes", "measured_bytes", "uncompressed_bytes")
_TOTALS = pa.schema(
    [
        *(("shown_topic", pa.string()), ("is_control", pa.bool_()), ("compression", pa.string())),
        *((name, pa.int64()) for name in ("stretch", "size_from", *_SUMS)),
    ]
)
# So many batches are added up at a time.
_MOST_WAITING = 16 * 1024


def shown_topics(column: pa.Array, topics: Sequence[str | None]) -> pa.Array:
    """Return the topic where it is one of these, null for all others."""
    known = of_values([topic for topic in topics if topic is not None], pa.string())
    return pc.if_else(pc.is_in(column, value_set=known), column, pa.scalar(None, pa.string()))


def asked_times(until_ms: int = _NO_YEAR_MS) -> AskedView:
    """Return the view of the times of batches, for a grid: of those up to `until_ms`."""
    return AskedView("batches", (_TIME,), partial(_kept_times, until_ms=until_ms), _TIMES)


class TimeSpread:
    """The times of batches, of the rows of `asked_times`: a grid over nearly all of them, and a
    time that hardly any is later than; an empty grid and 0 where there is none."""

    def __init__(self, times: Rows) -> None:
        spread = _spread(times.table)
        self.is_known = spread is not None
        self.grid = TimeGrid(0, 1, 0) if spread is None else grid_over(*spread)
        self.latest_ms = 0 if spread is None else spread[2]


def asked_sums(sums: BatchSums) -> AskedView:
    """Return the view that has sums over batches."""
    return AskedView("batches", _COLUMNS, schema=_TOTALS, fold=partial(FoldedSums, sums))


def batches_section(spread: TimeSpread, found: Rows) -> BatchesSection:
    """Return sums over batches, given the rows of `asked_sums`."""
    totals = as_rows(_summed([found.table]).to_pylist())
    of_records = [row for row in totals if not row.is_control]
    after = [row for row in of_records if row.stretch == spread.grid.stretches + 1]
    return BatchesSection(
        spread.grid if spread.is_known else None,
        spread.latest_ms,
        summed(of_records, "shown_topic", "stretch"),
        summed(of_records, "shown_topic", "compression"),
        summed(of_records, "compression", "size_from"),
        summed([row for row in totals if row.is_control], "shown_topic"),
        Row(**{name: sum(row[name] for row in after) for name in ("batches", "records", "bytes")}),
    )


def _kept_times(batches: Batches, until_ms: int) -> Iterator[pa.RecordBatch]:
    """Yield some of the times of a task, with how many each stands for."""
    found = [np.zeros(0, np.int64)]
    for batch in batches:
        times = integers(batch.column(0).fill_null(-1))
        found.append(times[(times >= 0) & (times < _NO_YEAR_MS) & (times <= until_ms)])
    times = np.sort(np.concatenate(found))
    if len(times):
        places = np.linspace(0, len(times) - 1, min(len(times), _KEPT_TIMES)).astype(np.int64)
        weights = np.full(len(places), len(times) / len(places))
        columns = [fixed_width(times[places], pa.int64()), fixed_width(weights, pa.float64())]
        yield pa.RecordBatch.from_arrays(columns, schema=_TIMES)


def _spread(kept: pa.Table) -> tuple[int, int, int, int] | None:
    """Return the least time, two between which all but about a fiftieth lie, and the greatest."""
    if not len(kept):
        return None
    in_order = kept.sort_by("time")
    times, weights = (column.to_numpy() for column in in_order.columns)
    reached = np.cumsum(weights) / np.sum(weights)
    low, high = (int(times[np.searchsorted(reached, share)]) for share in (0.01, 0.99))
    return int(times[0]), low, high, int(times[-1])


@dataclass(frozen=True, slots=True)
class BatchSums:
    """How batches are summed up: by topic, null for those that are not shown; codec; stretch
    of time, -1 for times before the grid and without one, `grid.stretches` for those after it, one
    more for those after `until_ms`; power of two of the size; and whether they are control batches.
    Uncompressed bytes, and those measured in the file, are of batches that can be decoded; records
    are those of each partition's longest copy, by the directories in `longest`. No stretch of the
    grid has batches later than `until_ms`."""

    longest: frozenset[str]
    topics: Sequence[str | None]
    grid: TimeGrid
    until_ms: int = _NO_YEAR_MS

    def columns(self, batch: pa.RecordBatch) -> pa.Table:
        """Return each batch as a sum of its own."""
        size = integers(batch.column("size").fill_null(0))
        raw = batch.column("uncompressed_size")
        is_measured = raw.is_valid()
        columns = {
            "shown_topic": shown_topics(batch.column("topic"), self.topics),
            "is_control": batch.column("is_control").fill_null(False),
            "compression": batch.column("compression"),
            "stretch": fixed_width(self._stretches(batch.column(_TIME)), pa.int64()),
            "size_from": fixed_width(_power_of_two(size), pa.int64()),
            "batches": fixed_width(np.ones(len(size)), pa.int64()),
            "records": self._once(batch.column("file"), batch.column("records")),
            "bytes": fixed_width(size, pa.int64()),
            "measured_bytes": pc.if_else(is_measured, batch.column("size"), 0).cast(pa.int64()),
            "uncompressed_bytes": raw.fill_null(0).cast(pa.int64()),
        }
        return pa.table(columns, schema=_TOTALS)

    def _stretches(self, times: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        grid, found = self.grid, integers(times.fill_null(-1))
        inside = np.minimum((found - grid.begin_ms) // grid.every_ms, grid.stretches)
        inside = np.where(found > self.until_ms, grid.stretches + 1, inside)
        is_before = (found < grid.begin_ms) | (integers(times.is_null().cast(pa.int64())) == 1)
        return np.where(is_before, -1, inside)

    def _once(self, files: pa.Array, records: pa.Array) -> pa.Array:
        """Return the records, 0 of replicas that do not count."""
        found = files.dictionary_encode()
        counts = [
            posixpath.dirname(file or "") in self.longest for file in found.dictionary.to_pylist()
        ]
        is_counted = of_values(counts, pa.bool_()).take(found.indices)
        return pc.if_else(is_counted, records.fill_null(0), 0).cast(pa.int64())


class FoldedSums:
    """Sums over the batches of a task."""

    def __init__(self, sums: BatchSums) -> None:
        self._sums = sums
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._summed: list[pa.Table] = []

    def add(self, batch: pa.RecordBatch) -> Sequence[pa.RecordBatch]:
        """Add up batches, many at a time."""
        self._waiting.append(batch)
        self._waiting_rows += len(batch)
        if self._waiting_rows >= _MOST_WAITING:
            self._add_up()
        return ()

    def end(self) -> Sequence[pa.RecordBatch]:
        """Return the sums."""
        self._add_up()
        return [batch for table in self._summed for batch in table.to_batches()]

    def _add_up(self) -> None:
        if self._waiting:
            together = pa.concat_batches(self._waiting)
            self._summed = [_summed([*self._summed, self._sums.columns(together)])]
            self._waiting, self._waiting_rows = [], 0


def _power_of_two(
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the largest power of two that is not above each size."""
    _, exponents = np.frexp(np.maximum(sizes, 1).astype(np.float64))
    return np.left_shift(np.int64(1), exponents.astype(np.int64) - 1)


def _summed(tables: Sequence[pa.Table]) -> pa.Table:
    return grouped(tables, _TOTALS, dict.fromkeys(_SUMS, "sum"))


def _nulls_first(key: tuple[object, ...]) -> list[tuple[bool, object]]:
    return [(value is not None, value) for value in key]


def summed(totals: Sequence[Row], *keys: str) -> list[Row]:
    """Return the rows of fewer keys, in their order."""
    found: dict[tuple[object, ...], list[int]] = {}
    for row in totals:
        sums = found.setdefault(tuple(row[key] for key in keys), [0] * len(_SUMS))
        for number, name in enumerate(_SUMS):
            sums[number] += row[name]
    return [
        Row(**dict(zip(keys, key, strict=True)), **dict(zip(_SUMS, found[key], strict=True)))
        for key in sorted(found, key=_nulls_first)
    ]
