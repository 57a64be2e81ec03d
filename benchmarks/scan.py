"""Records as Arrow, and a query over them: `python -m benchmarks.scan`.

`kafkalog.scan` with all cores beside aiokafka's parser, which puts the same bytes into Arrow
without a network, and DuckDB over Parquet files of the same rows; then a query by `kafkalog.sql`,
by DuckDB over the Parquet files, and with --spark by `spark.sql`, whose session has started
before. Every contender's rows are counted. Partitions are hard links to one segment of kafkalog's
writer; files are in the system's cache.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import kafkalog
from benchmarks.contest import peers
from benchmarks.inputs.linked_segments import linked_log_dir, write_segment
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table

_COLUMNS = ("key", "value", "offset", "timestamp")
_PARTITIONS = 4
_QUERY = (
    'select partition, count(*), max("timestamp"), sum(octet_length(value)) from {table} '
    "group by partition order by partition"
)
_ONE = 'select octet_length(value) from {table} where partition = 2 and "offset" = 100000'
_HEADER = ("what", "contender", "s", "processor s", "MB/s of log files")
Count = Callable[[], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    options.inputs.mkdir(parents=True, exist_ok=True)
    before = load()
    with tempfile.TemporaryDirectory(dir=options.inputs.resolve()) as scratch:
        segment = Path(scratch) / "segment"
        share = options.megabytes * 1_000_000 // _PARTITIONS
        write_segment(segment, options.codec, options.record_size, options.inputs, share)
        log_dir = linked_log_dir(segment, _PARTITIONS)
        size = sum(path.stat().st_size for path in log_dir.glob("*/*.log"))
        parquet = _parquet(log_dir, Path(scratch) / "parquet")
        contests = {
            "records into Arrow": _reads(log_dir, parquet, options.codec),
            "a query over all": _queries(log_dir, parquet, _QUERY, spark=options.spark),
            "one record": _queries(log_dir, parquet, _ONE, spark=options.spark),
        }
        rows = [
            (what, *row)
            for what, contenders in contests.items()
            for row in _measured(contenders, size, options.rounds)
        ]
    print(f"{machine(('pyarrow', 'duckdb', 'aiokafka', 'numba'), 'all')}; {before} before")
    print(f"{options.codec}, values of {options.record_size} bytes, {size / 1e6:.0f} MB of logs\n")
    print(table(_HEADER, rows))
    return 0


def _reads(log_dir: Path, parquet: Path, codec: str) -> dict[str, Count]:
    def by_scan(processes: int | None) -> int:
        scan = kafkalog.scan(log_dir, columns=_COLUMNS, processes=processes)
        return _rows(scan.to_reader())

    def by_aiokafka() -> int:
        read = peers.aiokafka(codec)
        files = sorted(log_dir.glob("*/*.log"))
        return sum(_rows(read(path.read_bytes())) for path in files)

    def by_parquet() -> int:
        with duckdb.connect() as connection:
            names = ", ".join(f'"{name}"' for name in _COLUMNS)
            found = connection.sql(f"select {names} from read_parquet('{parquet}/*.parquet')")
            return _rows(found.to_arrow_reader(65_536))

    return {
        "kafkalog.scan, all cores": lambda: by_scan(None),
        "kafkalog.scan, one process": lambda: by_scan(1),
        "aiokafka's parser": by_aiokafka,
        "DuckDB over Parquet": by_parquet,
    }


def _queries(log_dir: Path, parquet: Path, query: str, *, spark: bool) -> dict[str, Count]:
    def by_sql() -> int:
        return len(kafkalog.sql(log_dir).execute(query.format(table="records")).fetchall())

    def by_parquet() -> int:
        files = f"read_parquet('{parquet}/*.parquet')"
        with duckdb.connect() as connection:
            return len(connection.execute(query.format(table=files)).fetchall())

    found: dict[str, Count] = {"kafkalog.sql": by_sql, "DuckDB over Parquet": by_parquet}
    if spark:
        session = kafkalog.notebook_session()

        def by_spark() -> int:
            kafkalog.read(session, str(log_dir)).createOrReplaceTempView("records")
            text = query.format(table="records").replace('"', "`")
            return len(session.sql(text).collect())

        by_spark()  # starts its Python workers
        found["spark.sql"] = by_spark
    return found


def _measured(
    contenders: dict[str, Count], size: int, rounds: int
) -> Iterable[tuple[str, str, str, str]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    counts = set()
    for _ in range(rounds):
        for name, run in contenders.items():
            progress(f"measuring {name}")
            start, used = time.perf_counter(), _processor_seconds()
            counts.add(run())
            times[name].append((time.perf_counter() - start, _processor_seconds() - used))
    if len(counts) != 1:
        raise AssertionError(f"contenders have different numbers of rows: {counts}")
    for name, found in times.items():
        seconds, processor = (statistics.median(each) for each in zip(*found, strict=True))
        yield name, f"{seconds:.2f}", f"{processor:.2f}", f"{size / 1e6 / seconds:.0f}"


def _processor_seconds() -> float:
    """Return those of this process and of the ones that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _rows(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(map(len, batches))


def _parquet(log_dir: Path, directory: Path) -> Path:
    directory.mkdir()
    for number in range(_PARTITIONS):
        topic = next(path.name.rpartition("-")[0] for path in log_dir.iterdir() if path.is_dir())
        reader = kafkalog.scan(log_dir, topics={topic: [number]}).to_reader()
        path = directory / f"{number}.parquet"
        with pq.ParquetWriter(path, reader.schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(batch)
    return directory


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scan", description=__doc__)
    parser.add_argument("--codec", default="lz4", help="of the batches (default: %(default)s)")
    parser.add_argument("--record-size", type=int, default=1024, metavar="BYTES", help="of values")
    parser.add_argument("--megabytes", type=int, default=1024, metavar="MB", help="of log files")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender")
    parser.add_argument("--spark", action="store_true", help="the query by spark.sql, too")
    inputs_argument(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
