"""What `benchmarks/spark_source.py` measures, inside one Spark session: `--part` of it.

Each query runs on the same rows by kafkalog's source, by Spark's own Kafka source, and of Parquet
files where those are a peer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from benchmarks.inputs.broker_topics import Topic
from benchmarks.measuring.processes import busy_seconds, process_seconds
from benchmarks.spark.prebuilt_source import prebuilt

KAFKALOG, KAFKA, PARQUET, PREBUILT = "kafkalog", "kafka", "parquet", "prebuilt"
PARQUET_CODECS = {"none": "uncompressed", "lz4": "lz4_raw"}
_WINDOW_SHARE = 0.01

Runs = dict[str, Callable[[], None]]


@dataclass(slots=True)
class Timed:
    """One contender by round: elapsed seconds, and processor seconds of this session and of the
    broker."""

    seconds: list[float] = field(default_factory=list)
    busy_seconds: list[float] = field(default_factory=list)
    broker_seconds: list[float] = field(default_factory=list)

    def medians(self) -> tuple[float, float, float]:
        """In that order."""
        all_of = (self.seconds, self.busy_seconds, self.broker_seconds)
        first, second, third = (statistics.median(rounds) for rounds in all_of)
        return first, second, third


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows are."""

    bootstrap: str
    broker_pid: int
    log_dir: Path
    scratch: Path


class Contest:
    """The contenders for one topic, in turn."""

    def __init__(self, spark: SparkSession, place: Place, topic: Topic) -> None:
        self._spark = spark
        self._place = place
        self._topic = topic

    def run(self, query: str, rounds: int) -> dict[str, Timed]:
        """The contenders of a query, by name, in turn for so many rounds."""
        queries: dict[str, Callable[[], Runs]] = {
            "full_rows": self._full_rows,
            "to_parquet": self._to_parquet,
            "count_by_partition": self._count_by_partition,
            "offsets_and_timestamps": self._offsets_and_timestamps,
            "time_window": self._time_window,
            "time_options": self._time_options,
        }
        return measured(queries[query](), rounds, self._place.broker_pid)

    def check_rows(self) -> int:
        """How many records both sources have. Raises ValueError unless their rows are equal."""
        theirs, ours = (_fingerprint(self._frame(name, {})) for name in (KAFKA, KAFKALOG))
        if theirs != ours or ours[0] != self._topic.records:
            raise ValueError(f"{self._topic.label}: Kafka's source {theirs}, kafkalog {ours}")
        return ours[0]

    def _full_rows(self) -> Runs:
        """Every column of every record to nowhere; also from Parquet files of the same codec, and
        from a Python source that has as many rows in memory."""
        if not self._parquet_dir(KAFKALOG).exists():
            self._written_to_parquet(KAFKALOG)()
        return {name: self._noop(name, {}) for name in (KAFKALOG, KAFKA, PARQUET, PREBUILT)}

    def _to_parquet(self) -> Runs:
        """Every column of every record to Parquet files of the same codec."""
        return {name: self._written_to_parquet(name) for name in (KAFKALOG, KAFKA)}

    def _count_by_partition(self) -> Runs:
        def run(name: str, options: Mapping[str, str]) -> Callable[[], None]:
            def count() -> None:
                counted = self._frame(name, options).groupBy("partition").count()
                if sum(row["count"] for row in counted.collect()) != self._topic.records:
                    raise ValueError(f"{self._topic.label}: {name} counts otherwise")

            return count

        return {KAFKALOG: run(KAFKALOG, {"columns": "partition"}), KAFKA: run(KAFKA, {})}

    def _offsets_and_timestamps(self) -> Runs:
        """Two columns of every record."""
        names = ["offset", "timestamp"]

        def run(name: str, options: Mapping[str, str]) -> Callable[[], None]:
            return lambda: _to_nowhere(self._frame(name, options).select(*names))

        return {KAFKALOG: run(KAFKALOG, {"columns": ",".join(names)}), KAFKA: run(KAFKA, {})}

    def _time_window(self) -> Runs:
        """All columns of the records of a hundredth of the time: where the DataFrame of Kafka's
        source is filtered, kafkalog gets the times."""
        first_ms, until_ms = self._window()
        timestamp = F.col("timestamp")
        bounds = [F.timestamp_millis(F.lit(bound)) for bound in (first_ms, until_ms)]
        asked = (timestamp >= bounds[0]) & (timestamp < bounds[1])
        given = {"fromTimestamp": str(first_ms), "untilTimestamp": str(until_ms)}
        if self._frame(KAFKALOG, given).count() != self._frame(KAFKA, {}).filter(asked).count():
            raise ValueError(f"{self._topic.label}: the window holds different rows")
        return {
            KAFKALOG: self._noop(KAFKALOG, given),
            KAFKA: lambda: _to_nowhere(self._frame(KAFKA, {}).filter(asked)),
        }

    def _time_options(self) -> Runs:
        """The same window by the options that both have."""
        first_ms, until_ms = self._window()
        given = {"startingTimestamp": str(first_ms), "endingTimestamp": str(until_ms)}
        return {name: self._noop(name, given) for name in (KAFKALOG, KAFKA)}

    def _window(self) -> tuple[int, int]:
        times = self._spark.read.format("kafkalog").option("view", "batches")
        times = times.option("subscribe", self._topic.name)
        times = times.option("columns", "max_timestamp_ms,base_timestamp_ms")
        found = times.load(str(self._place.log_dir)).agg(
            F.min("base_timestamp_ms").alias("first"), F.max("max_timestamp_ms").alias("last")
        )
        ((first, last),) = found.collect()
        middle = (first + last) // 2
        return middle, middle + max(int((last - first) * _WINDOW_SHARE), 1)

    def _frame(self, name: str, options: Mapping[str, str]) -> DataFrame:
        if name == PARQUET:
            return self._spark.read.parquet(str(self._parquet_dir(KAFKALOG)))
        if name == PREBUILT:
            return prebuilt(self._spark, self._topic.records, self._topic.record_size)
        reader: DataFrameReader = self._spark.read.format(name).options(**options)
        reader = reader.option("subscribe", self._topic.name)
        if name == KAFKA:
            return reader.option("kafka.bootstrap.servers", self._place.bootstrap).load()
        return reader.load(str(self._place.log_dir))

    def _noop(self, name: str, options: Mapping[str, str]) -> Callable[[], None]:
        return lambda: _to_nowhere(self._frame(name, options))

    def _written_to_parquet(self, name: str) -> Callable[[], None]:
        codec = PARQUET_CODECS.get(self._topic.codec, self._topic.codec)

        def write() -> None:
            writer = self._frame(name, {}).write.mode("overwrite").option("compression", codec)
            writer.parquet(str(self._parquet_dir(name)))

        return write

    def _parquet_dir(self, name: str) -> Path:
        return self._place.scratch / f"{self._topic.name}-{name}"


def empty_source(spark: SparkSession, place: Place, rounds: int) -> Timed:
    """A read of a log directory without records: what each of kafkalog's reads has in it."""
    (place.scratch / "empty-0").mkdir()
    (place.scratch / "empty-0" / f"{0:020}.log").touch()

    def read() -> None:
        _to_nowhere(spark.read.format(KAFKALOG).load(str(place.scratch / "empty-0")))

    return measured({KAFKALOG: read}, rounds, place.broker_pid)[KAFKALOG]


def measured(contenders: Runs, rounds: int, broker_pid: int) -> dict[str, Timed]:
    """All take turns, another one first in each round."""
    timed = {name: Timed() for name in contenders}
    names = list(contenders)
    for number in range(rounds):
        first = number % len(names)
        for name in [*names[first:], *names[:first]]:
            _take_turn(contenders[name], timed[name], broker_pid)
    return timed


def _take_turn(run: Callable[[], None], timed: Timed, broker_pid: int) -> None:
    started, busy = time.perf_counter(), busy_seconds()
    broker = process_seconds(broker_pid)
    run()
    timed.seconds.append(time.perf_counter() - started)
    timed.busy_seconds.append(busy_seconds() - busy)
    timed.broker_seconds.append(process_seconds(broker_pid) - broker)


def _to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _fingerprint(frame: DataFrame) -> tuple[int, ...]:
    """Return a value that is equal for the same rows in any order."""
    columns = [F.hash(F.col(name)).cast("long") for name in frame.columns]
    ((*found,),) = frame.agg(F.count("*"), *(F.sum(column) for column in columns)).collect()
    return tuple(found)
