"""How long a large ZooKeeper snapshot takes, and how much memory: `python -m benchmarks.zookeeper`.

Each measurement runs in a process of its own that may use one processor: the views as a task makes
them, `znodes` to a count through Spark, and ZooKeeper's own SnapshotFormatter, which prints the
nodes to nowhere. What all have to do before they begin, such as the start of Spark or of a JVM, is
in the seconds of SnapshotFormatter only. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version

from benchmarks.inputs.zookeeper_inputs import Written, write_snapshot
from benchmarks.measuring.processes import (
    Measured,
    busy_seconds,
    measured_process,
    submit_arguments,
)
from benchmarks.measuring.report import inputs_argument, load, table
from tests.support.broker.class_paths import class_path

_TOOL = "org.apache.zookeeper.server.SnapshotFormatter"
_COLUMNS = ("what", "s", "processor s", "÷ SnapshotFormatter's", "peak MiB")
_PEER = "SnapshotFormatter 3.9.3"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    written = write_snapshot(options.inputs, options.znodes)
    if options.part:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(_PARTS[options.part](written)))
        return 0
    before = load()
    best: dict[str, Measured] = {}
    for _ in range(options.rounds):
        for part in _PARTS:
            measured = _measured(part, options)
            print(f"{part}: {measured}", file=sys.stderr)
            kept = best.get(part, measured)
            best[part] = min(measured, kept, key=lambda taken: taken.busy_seconds)
    size = written.path.stat().st_size / 2**20
    print(f"Python {platform.python_version()}, pyspark {version('pyspark')}")
    print(f"{written.nodes:,} znodes, {size:,.0f} MiB; {before} before, {load()} after")
    rows = [_row(part, measured, best[_PEER].busy_seconds) for part, measured in best.items()]
    print(f"\n{table(_COLUMNS, rows, left=1)}")
    return 0


def _row(part: str, measured: Measured, peer_seconds: float) -> tuple[str, ...]:
    """The ratio is that of processor seconds, which other work on the machine disturbs least."""
    return (
        part,
        f"{measured.seconds:.1f}",
        f"{measured.busy_seconds:.1f}",
        f"{measured.busy_seconds / peer_seconds:.2f}",
        f"{measured.peak_bytes / 2**20:,.0f}",
    )


def _measured(part: str, options: argparse.Namespace) -> Measured:
    """One part in a fresh process. Raises CalledProcessError where it fails."""
    command = [sys.executable, "-m", "benchmarks.zookeeper", "--part", part]
    command += ["--inputs", str(options.inputs), "--znodes", str(options.znodes)]
    return measured_process(command, submit_arguments(cores=1, memory=options.memory))


def _view(view: str) -> Callable[[Written], Measured]:
    def read(written: Written) -> Measured:
        from kafkalog.schemas import table_fields
        from kafkalog.views.options.zookeeper.zookeeper_options import read_zookeeper_options
        from kafkalog.views.reading.zookeeper_reading import read_data_dir
        from kafkalog.zookeeper.data_dir import find_data_dirs

        options = read_zookeeper_options({"path": str(written.path), "view": view})
        columns = tuple(field["name"] for field in table_fields(view))
        started, busy = time.perf_counter(), busy_seconds()
        (data_dir,) = find_data_dirs(options.paths)
        rows = sum(batch.num_rows for batch in read_data_dir(data_dir, options, columns))
        return _checked(rows, written, started, busy)

    return read


def _through_spark(written: Written) -> Measured:
    from pyspark.sql import SparkSession

    import kafkalog

    spark = SparkSession.builder.getOrCreate()
    kafkalog.register(spark)
    spark.range(1).collect()
    started, busy = time.perf_counter(), busy_seconds()
    rows = spark.read.format("zookeeper").load(str(written.path)).count()
    measured = _checked(rows, written, started, busy)
    spark.stop()
    return measured


def _format(written: Written) -> Measured:
    command = ["java", "-Xmx2g", "-XX:+UseSerialGC", "-cp", class_path("zookeeper"), _TOOL]
    started, busy = time.perf_counter(), busy_seconds()
    subprocess.run(
        [*command, str(written.path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return _checked(written.nodes, written, started, busy)


def _checked(rows: int, written: Written, started: float, busy: float) -> Measured:
    if rows != written.nodes:
        raise AssertionError(f"{rows} rows of {written.nodes} znodes")
    return Measured(rows, time.perf_counter() - started, busy_seconds() - busy)


_PARTS: dict[str, Callable[[Written], Measured]] = {
    "view znodes, one process": _view("znodes"),
    "view znode_sizes, one process": _view("znode_sizes"),
    "view znodes to a count, Spark local[1]": _through_spark,
    _PEER: _format,
}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zookeeper", description=__doc__)
    parser.add_argument("--znodes", type=int, default=1_000_000, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--memory", default="1g", help="of Spark's driver (default: %(default)s)")
    inputs_argument(parser)
    parser.add_argument("--part", choices=list(_PARTS), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
