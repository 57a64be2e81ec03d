"""How far estimates of lag in time are off, beside what the records themselves say:
`python -m benchmarks.time_lag`.

Logs of a week whose every record's time is known are written as segments. A consumer has read all
records up to some time ago; the next one's age is the true answer. kafkalog reads it from the
files; the others see what they would have seen of this log, on time and without noise.
"""

from __future__ import annotations

import argparse
import bisect
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measuring.report import table
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.inspection.lag.lag_columns import lag_accounts
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.writing.log_settings import LogSettings
from kafkalog.storage.writing.log_writer import LogWriter
from kafkalog.wire.compression import CompressionType

START_MS = 1_700_000_000_000
_HOUR = 60 * 60
WEEK = 7 * 24 * _HOUR
AGES = (600, 7_200, 86_400)
_BATCH_RECORDS = 100
_SEGMENT_BYTES = 2 * 1024 * 1024
# Of the exporters, by their defaults; the window is that of most recording rules.
_POLL_SECONDS, _TABLE_POINTS, _RATE_SECONDS = 30, 60, 300
_COLUMNS = (
    "log",
    "true age s",
    "kafkalog, error ms",
    "line between ends s",
    "table of samples s",
    "lag ÷ rate s",
)


@dataclass(frozen=True, slots=True)
class TimeLag:
    """A log, how old the next record truly is, and what each method says, in milliseconds; the
    methods by the columns of the table."""

    log: str
    age_ms: int
    exact_ms: int
    line_ms: float
    table_ms: float
    rate_ms: float


def rates(log: str, per_second: float) -> np.ndarray:
    """Records in each second of a week."""
    seconds = np.arange(WEEK)
    if log == "diurnal":
        # Ten times as many at the height of the day as in the night; the week ends in between.
        return per_second * (1 + 9 / 11 * np.sin(2 * np.pi * seconds / (24 * _HOUR)))
    flat = np.full(WEEK, per_second)
    if log == "burst":
        # For an hour, thirty hours ago.
        flat[WEEK - 30 * _HOUR : WEEK - 29 * _HOUR] *= 50
    if log == "idle":
        # A record a minute in the last twelve hours.
        flat[WEEK - 12 * _HOUR :] = 1 / 60
    return flat


LOGS = ("steady", "diurnal", "burst", "idle")


def record_times(log: str, per_second: float) -> np.ndarray:
    """When each record was written, evenly within what the log's rates say."""
    written = np.concatenate([[0.0], np.cumsum(rates(log, per_second))])
    numbers = np.arange(1, int(written[-1]) + 1)
    seconds = np.interp(numbers, written, np.arange(WEEK + 1))
    times: np.ndarray = START_MS + np.round(seconds * 1000).astype(np.int64)
    return times


def write_log(directory: Path, times: np.ndarray) -> None:
    """A partition with a record of each time, every other batch compressed."""
    settings = LogSettings(segment_bytes=_SEGMENT_BYTES)
    with LogWriter(
        str(directory), settings, now_ms=lambda: START_MS, flush=lambda _: None
    ) as writer:
        for number, first in enumerate(range(0, len(times), _BATCH_RECORDS)):
            batch = times[first : first + _BATCH_RECORDS].tolist()
            records = [Record(first + i, ms, 0, None, b"value") for i, ms in enumerate(batch)]
            codec = CompressionType.LZ4 if number % 2 else CompressionType.NONE
            writer.append(write_batch(records, BatchFields(compression=codec)))


def exact(directory: Path, committed: int, now_ms: int) -> int:
    """kafkalog: the age of the next record, from the segments."""
    (log,) = find_partitions([str(directory)])
    account = lag_accounts(log, np.array([committed]), read_committed=False, now_ms=now_ms)
    return now_ms - int(account.next_timestamp_ms[0])


def line(times: np.ndarray, committed: int, now_ms: int) -> float:
    """klag: the committed offset's time is on the line between the first record's offset and time
    and those of the record with the largest timestamp."""
    last = int(times.argmax())
    at = np.interp(committed, [0, last], [times[0], times[last]])
    return float(max(now_ms - at, 0))


def sample_table(times: np.ndarray, committed: int, now_ms: int) -> float:
    """kafka-lag-exporter: the log end is noted every thirty seconds, of the last sixty different
    ones the two that the committed offset lies between, else the first and the last, make the line
    that its time is on. Of several equal ends the first and the last are kept."""
    points: list[tuple[int, int]] = []
    for at in range(START_MS, now_ms + 1, _POLL_SECONDS * 1000):
        end = int(np.searchsorted(times, at, side="right"))
        if len(points) > 1 and points[-1][0] == points[-2][0] == end:
            points.pop()
        points = [*points[-_TABLE_POINTS + 1 :], (end, at)]
    ends = [end for end, _ in points]
    if committed == ends[-1]:
        return 0.0
    right = bisect.bisect_right(ends, committed)
    is_inside = 0 < right < len(points)
    (left_end, left_ms), (right_end, right_ms) = (
        (points[right - 1], points[right]) if is_inside else (points[0], points[-1])
    )
    at_ms = right_ms - (right_end - committed) * (right_ms - left_ms) / (right_end - left_end)
    return max(now_ms - at_ms, 0.0)


def lag_by_rate(times: np.ndarray, committed: int, now_ms: int) -> float:
    """What a rule over metrics divides: lag by the records per second of the last five minutes."""
    recent = len(times) - int(np.searchsorted(times, now_ms - _RATE_SECONDS * 1000, side="right"))
    return (len(times) - committed) / recent * _RATE_SECONDS * 1000


_Estimate = Callable[[np.ndarray, int, int], float]
_ESTIMATES: tuple[_Estimate, ...] = (line, sample_table, lag_by_rate)


def time_lags(folder: Path, per_second: float, ages: Sequence[int] = AGES) -> list[TimeLag]:
    """All logs and ages, each log written to a folder and read from there."""
    now_ms = START_MS + WEEK * 1000
    found = []
    for log in LOGS:
        times = record_times(log, per_second)
        directory = folder / f"{log}-0"
        write_log(directory, times)
        for age in ages:
            committed = int(np.searchsorted(times, now_ms - age * 1000, side="right"))
            estimates = (estimate(times, committed, now_ms) for estimate in _ESTIMATES)
            true_ms = now_ms - int(times[committed])
            found.append(TimeLag(log, true_ms, exact(directory, committed, now_ms), *estimates))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the logs, ask everybody, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.time_lag", description=__doc__)
    parser.add_argument(
        "--rate",
        type=float,
        default=1.0,
        metavar="N",
        help="records per second of the steady log (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = [_row(each) for each in time_lags(Path(folder), options.rate)]
    print(table(_COLUMNS, rows, left=1))
    return 0


def _row(each: TimeLag) -> tuple[str, ...]:
    seconds = (each.line_ms, each.table_ms, each.rate_ms)
    return (
        each.log,
        f"{each.age_ms / 1000:,.1f}",
        f"{each.exact_ms - each.age_ms}",
        *(f"{milliseconds / 1000:,.1f}" for milliseconds in seconds),
    )


if __name__ == "__main__":
    raise SystemExit(main())
