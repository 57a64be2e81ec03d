"""How long the state of many records takes, beside Spark's own groupBy over the same in Parquet:
`python -m benchmarks.state`.

Each contender runs in processes of its own, on local[2] with a driver of 2 GiB, and writes Parquet;
one writes a Delta table of all but the last hundredth of the records, and then adds these. Spark's
start and the compiling of kernels are not in the time.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from operator import truediv
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.inputs.state_inputs import VALUE_BYTES, write_inputs
from benchmarks.measuring.processes import busy_seconds, given_jars, part_output, submit_arguments
from benchmarks.measuring.report import inputs_argument, load, table
from kafkalog.spark.jobs.job import ExitCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = "kafkalog: jobs/reconstruct_state.py"
DELTA = "the same into a Delta table, of 99 % of the records"
INCREMENT = "and the last 1 % merged into it"
GROUP_BY = "Spark: groupBy and max_by over Parquet"
_COLUMNS = ("what", "s", "processor s", "M records/s", "times groupBy's rate", "peak MiB")
_MIB = 1024 * 1024


class _Part(NamedTuple):
    """What a contender has measured: seconds, those that processors were busy, and records."""

    seconds: float
    busy_seconds: float
    records: int


_Parts = Mapping[str, _Part]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    if options.contender:
        print(json.dumps(_CONTENDERS[options.contender](options)))
        return 0
    before = load()
    write_inputs(
        options.inputs,
        options.records,
        options.keys,
        value_bytes=options.value_bytes,
        has_every_key=options.every_key,
        with_parquet="group-by" in options.only,
    )
    measured: dict[str, list[_Part]] = {}
    peaks: dict[str, list[int]] = {}
    for _ in range(options.rounds):
        for contender in options.only:
            parts, peak = _measured(contender, options)
            for name, part in parts.items():
                measured.setdefault(name, []).append(_Part(*part))
                peaks.setdefault(name, []).append(peak)
                print(f"{name}: {part[0]:.1f} s", file=sys.stderr)
    rates = {
        name: [each.records / each.seconds for each in parts] for name, parts in measured.items()
    }
    rows = [
        (
            name,
            f"{median(each.seconds for each in parts):.1f}",
            f"{median(each.busy_seconds for each in parts):.1f}",
            f"{median(rates[name]) / 1e6:.2f}",
            f"{median(map(truediv, rates[name], rates[GROUP_BY])):.2f}"
            if GROUP_BY in rates
            else "",
            f"{median(peaks[name]) / _MIB:,.0f}",
        )
        for name, parts in measured.items()
    ]
    print(
        f"Python {platform.python_version()}, pyspark {version('pyspark')}, local[2], a driver of "
    )
    print(f"{options.memory}; {options.records:,} records, {options.keys:,} keys")
    print(f"{before} before, {load()} after")
    print(f"\n{table(_COLUMNS, rows, left=1)}")
    return 0


def _measured(name: str, options: argparse.Namespace) -> tuple[Mapping[str, Sequence[Any]], int]:
    """The parts of one run in a fresh process, and its peak of memory. Raises CalledProcessError
    where it fails."""
    command = [sys.executable, "-m", "benchmarks.state", "--contender", name]
    for option in ("inputs", "records", "keys"):
        command += [f"--{option}", str(getattr(options, option))]
    # Spark fetches the jars that the environment does not name.
    jars = given_jars() if name == "delta" else ""
    return part_output(command, submit_arguments(memory=options.memory, jars=jars))


def _job(options: argparse.Namespace) -> _Parts:
    with _session(options, with_delta=False) as spark, tempfile.TemporaryDirectory() as output:
        taken = _run(options, output, "parquet")
        if spark.read.parquet(f"{output}/state").count() > options.keys:
            raise ValueError("not the state of these keys")
        return {JOB: _Part(*taken, options.records)}


def _delta(options: argparse.Namespace) -> _Parts:
    most = options.records * 99 // 100
    with _session(options, with_delta=True), tempfile.TemporaryDirectory() as output:
        first = _run(options, output, "delta", "--as-of-offset", str(most))
        rest = _run(options, output, "delta")
        return {DELTA: _Part(*first, most), INCREMENT: _Part(*rest, options.records - most)}


@contextmanager
def _session(options: argparse.Namespace, *, with_delta: bool) -> Iterator[SparkSession]:
    """Yield a job's session, with a worker that has its kernels. The environment of workers is that
    which a job gives them: Spark starts others for another one."""
    from kafkalog.spark.session import job_session
    from kafkalog.storage.files.unreadable_input import noted_unreadable_by_all

    with ExitStack() as ending:
        with noted_unreadable_by_all():
            session = job_session("state", with_delta=with_delta, compiles_less=True)
            spark = ending.enter_context(session)
            logs = str(options.inputs / "logs")
            spark.read.format("kafkalog").load(logs).limit(1).collect()
        yield spark


def _run(
    options: argparse.Namespace, output: str, table_format: str, *more: str
) -> tuple[float, float]:
    """Seconds of a run of the job, and those that processors were busy. Raises ValueError where it
    fails."""
    from jobs.reconstruct_state import main as run

    given = ["--format", table_format, "--show", "0", "--isolation-level", "read_committed"]
    with _timed() as taken:
        code = run([str(options.inputs / "logs"), "--output-dir", output, *given, *more])
    if code != ExitCode.DONE:
        raise ValueError(f"the job ended with exit code {code}")
    return taken()


@contextmanager
def _timed() -> Iterator[Callable[[], tuple[float, float]]]:
    """Yield what returns the seconds of the block, and those that processors were busy."""
    started, busy = time.perf_counter(), busy_seconds()
    taken = 0.0, 0.0
    yield lambda: taken
    taken = time.perf_counter() - started, busy_seconds() - busy


def _group_by(options: argparse.Namespace) -> _Parts:
    from pyspark.sql import functions as F

    from kafkalog.spark.session import job_session

    with job_session("state", with_delta=False) as spark, tempfile.TemporaryDirectory() as output:
        records = spark.read.parquet(str(options.inputs / "parquet"))
        records.limit(1).collect()
        latest = F.max_by(F.struct("value", "offset", "timestampMs"), "offset").alias("latest")
        state = records.groupBy("topic", "partition", "key").agg(latest)
        with _timed() as taken:
            state.select("topic", "partition", "key", "latest.*").write.parquet(f"{output}/state")
        return {GROUP_BY: _Part(*taken(), options.records)}


_CONTENDERS: dict[str, Callable[[argparse.Namespace], _Parts]] = {
    "parquet": _job,
    "delta": _delta,
    "group-by": _group_by,
}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.state", description=__doc__)
    for name, number in (("--records", 20_000_000), ("--keys", 1_000_000), ("--rounds", 1)):
        parser.add_argument(
            name, type=int, default=number, metavar="N", help="(default: %(default)s)"
        )
    parser.add_argument("--memory", default="2g", help="of the driver (default: %(default)s)")
    parser.add_argument(
        "--value-bytes",
        type=int,
        default=VALUE_BYTES,
        metavar="N",
        help="of each record (default: %(default)s)",
    )
    parser.add_argument(
        "--every-key", action="store_true", help="let the first records have each key once"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=tuple(_CONTENDERS),
        default=list(_CONTENDERS),
        metavar="NAME",
        help=f"measure these of {', '.join(_CONTENDERS)}",
    )
    inputs_argument(parser, Path(tempfile.gettempdir()) / "kafkalog-state")
    parser.add_argument("--contender", choices=tuple(_CONTENDERS), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
