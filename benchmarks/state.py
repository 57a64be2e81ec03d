"""How long the state of many records takes, beside Spark's own groupBy over the same in Parquet:
`python -m benchmarks.state`.

Each contender runs in processes of its own, on local[2] with a driver of 2 GiB, and writes Parquet.
Spark's start and the compiling of kernels are not in the time.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks.inputs.state_inputs import write_inputs
from benchmarks.measuring.report import inputs_argument, load, table

JOB = "kafkalog: jobs/reconstruct_state.py"
GROUP_BY = "Spark: groupBy and max_by over Parquet"
_COLUMNS = ("what", "s", "M records/s", "÷ groupBy's")
_PROJECT = Path(__file__).parent.parent
_SUBMIT = (
    "--master local[2] --driver-memory {memory} --conf spark.ui.enabled=false "
    "--conf spark.driver.bindAddress=127.0.0.1 --conf spark.driver.host=127.0.0.1 pyspark-shell"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    if options.contender:
        print(_CONTENDERS[options.contender](options))
        return 0
    before = load()
    write_inputs(options.inputs, options.records, options.keys)
    times: dict[str, list[float]] = {name: [] for name in _CONTENDERS}
    for _ in range(options.rounds):
        for name in _CONTENDERS:
            times[name].append(_measured(name, options))
            print(f"{name}: {times[name][-1]:.1f} s", file=sys.stderr)
    ratios = [one / other for one, other in zip(times[JOB], times[GROUP_BY], strict=True)]
    rows = [
        (name, f"{median(taken):.1f}", f"{options.records / median(taken) / 1e6:.2f}", ratio)
        for (name, taken), ratio in zip(times.items(), (f"{median(ratios):.2f}", "1"), strict=True)
    ]
    print(
        f"Python {platform.python_version()}, pyspark {version('pyspark')}, local[2], a driver of "
    )
    print(f"{options.memory}; {options.records:,} records, {options.keys:,} keys")
    print(f"{before} before, {load()} after")
    print(f"\n{table(_COLUMNS, rows, left=1)}")
    return 0


def _measured(name: str, options: argparse.Namespace) -> float:
    """Seconds of one run in a fresh process. Raises CalledProcessError where it fails."""
    command = [sys.executable, "-m", "benchmarks.state", "--contender", name]
    for option in ("inputs", "records", "keys"):
        command += [f"--{option}", str(getattr(options, option))]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": _SUBMIT.format(memory=options.memory),
    }
    done = subprocess.run(
        command, cwd=_PROJECT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return float(done.stdout.splitlines()[-1])


def _job(options: argparse.Namespace) -> float:
    from jobs.reconstruct_state import main as run
    from kafkalog.spark.session import job_session

    logs = options.inputs / "logs"
    given = ["--format", "parquet", "--show", "0", "--isolation-level", "read_committed"]
    with job_session("state", with_delta=False) as spark, tempfile.TemporaryDirectory() as output:
        spark.read.format("kafkalog").load(str(logs)).limit(1).collect()
        started = time.perf_counter()
        code = run([str(logs), "--output-dir", output, *given])
        taken = time.perf_counter() - started
        if code or spark.read.parquet(f"{output}/state").count() > options.keys:
            raise ValueError("not the state of these keys")
        return taken


def _group_by(options: argparse.Namespace) -> float:
    from pyspark.sql import functions as F

    from kafkalog.spark.session import job_session

    with job_session("state", with_delta=False) as spark, tempfile.TemporaryDirectory() as output:
        records = spark.read.parquet(str(options.inputs / "parquet"))
        records.limit(1).collect()
        started = time.perf_counter()
        latest = F.max_by(F.struct("value", "offset", "timestampMs"), "offset").alias("latest")
        state = records.groupBy("topic", "partition", "key").agg(latest)
        state.select("topic", "partition", "key", "latest.*").write.parquet(f"{output}/state")
        return time.perf_counter() - started


_CONTENDERS: dict[str, Callable[[argparse.Namespace], float]] = {JOB: _job, GROUP_BY: _group_by}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.state", description=__doc__)
    for name, number in (("--records", 20_000_000), ("--keys", 1_000_000), ("--rounds", 1)):
        parser.add_argument(
            name, type=int, default=number, metavar="N", help="(default: %(default)s)"
        )
    parser.add_argument("--memory", default="2g", help="of the driver (default: %(default)s)")
    inputs_argument(parser, Path(tempfile.gettempdir()) / "kafkalog-state")
    parser.add_argument("--contender", choices=tuple(_CONTENDERS), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
