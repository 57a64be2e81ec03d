"""How long the lag of very many groups takes, and how much memory: `python -m benchmarks.lag`.

Each measurement runs in a process of its own: reading all commits on one processor, as a task does,
and jobs/consumer_lag.py on local[2] with a driver of 2 GiB. Linux only.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.inputs.lag_inputs import LagInput, write_lag_inputs
from benchmarks.measuring.processes import (
    Measured,
    busy_seconds,
    measured_process,
    submit_arguments,
)
from benchmarks.measuring.report import inputs_argument, load, table

_COLUMNS = ("what", "s", "processor s", "commits/s", "peak MiB")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    size = LagInput(options.groups, commits=options.commits, records=options.records)
    if options.part:
        print(json.dumps(_PARTS[options.part](options.inputs / "log-dir")))
        return 0
    before = load()
    write_lag_inputs(options.inputs, size)
    rows = []
    for part in _PARTS:
        measured = _measured(part, options)
        print(f"{part}: {measured}", file=sys.stderr)
        rows.append(_row(part, measured, options.commits))
    groups = f"{size.groups:,} groups of {size.partitions} partitions"
    print(f"Python {platform.python_version()}, pyspark {version('pyspark')}")
    print(f"{groups}, {size.commits:,} commits, {size.records:,} records; {before} before")
    print(f"\n{table(_COLUMNS, rows, left=1)}")
    return 0


def _row(part: str, measured: Measured, commits: int) -> tuple[str, ...]:
    return (
        part,
        f"{measured.seconds:.1f}",
        f"{measured.busy_seconds:.1f}",
        f"{commits / measured.seconds:,.0f}",
        f"{measured.peak_bytes / 2**20:,.0f}",
    )


def _measured(part: str, options: argparse.Namespace) -> Measured:
    """One part in a fresh process. Raises CalledProcessError where it fails."""
    command = [sys.executable, "-m", "benchmarks.lag", "--part", part]
    command += ["--inputs", str(options.inputs)]
    return measured_process(command, submit_arguments(memory=options.memory))


def _read_commits(log_dir: Path) -> Measured:
    from kafkalog.inspection.compile_kernels import compile_kernels
    from kafkalog.schemas import table_fields
    from kafkalog.views.options.options import read_options
    from kafkalog.views.planning.planning import planned_groups
    from kafkalog.views.reading.commit_reading import CommitsRead, read_commits

    compile_kernels()
    options = read_options({"paths": json.dumps([str(log_dir)]), "view": "offset_commits"})
    columns = tuple(field["name"] for field in table_fields("offset_commits"))
    started, busy = time.perf_counter(), time.process_time()
    rows = 0
    for group in planned_groups(options):
        for read in group:
            assert isinstance(read, CommitsRead)
            rows += sum(batch.num_rows for batch in read_commits(read, options, columns))
    return Measured(rows, time.perf_counter() - started, time.process_time() - busy)


def _run_job(log_dir: Path) -> Measured:
    from jobs.consumer_lag import main as run
    from kafkalog.spark.session import job_session

    arguments = ["--format", "parquet", "--show", "0"]
    with job_session("lag", with_delta=False) as spark, tempfile.TemporaryDirectory() as output:
        spark.range(1).collect()
        started, busy = time.perf_counter(), busy_seconds()
        code = run([str(log_dir), "--output-dir", output, *arguments])
        seconds, busy = time.perf_counter() - started, busy_seconds() - busy
        rows = spark.read.parquet(f"{output}/consumer_lag").count()
    if code:
        raise ValueError(f"the job ended with {code}")
    return Measured(rows, seconds, busy)


_PARTS: dict[str, Callable[[Path], Measured]] = {
    "view offset_commits, one process": _read_commits,
    "jobs/consumer_lag.py": _run_job,
}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lag", description=__doc__)
    size = LagInput()
    for name in ("groups", "commits", "records"):
        parser.add_argument(
            f"--{name}",
            type=int,
            default=getattr(size, name),
            metavar="N",
            help="(default: %(default)s)",
        )
    parser.add_argument("--memory", default="2g", help="of the driver (default: %(default)s)")
    inputs_argument(parser, Path(tempfile.gettempdir()) / "kafkalog-lag")
    parser.add_argument("--part", choices=tuple(_PARTS), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
