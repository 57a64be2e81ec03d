"""What a job costs before it has much to read: `python -m benchmarks.job_start`.

Each job runs on one of examples/ in a process of its own; beside it, in each round, an empty
session that reads a Python source of one row and writes it to a Delta table, with the settings of
all jobs, and another with those for small inputs. Times begin with the process and so include
Python's and Spark's start, for all. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

from benchmarks.measuring.processes import busy_seconds, given_jars, part_output, submit_arguments
from benchmarks.measuring.report import load, machine, progress, table
from kafkalog.exit_codes import ExitCode

_TARGET = 1.4
_SESSION, _SMALL_SESSION = "empty session", "empty session for small inputs"
_EXAMPLES = Path(__file__).parents[1] / "examples"
_ALL = ("log-dirs/damaged", "log-dirs/kafka-0.10", "log-dirs/kafka-4.4")
_SHOP = ("shop-week",)
# The examples that each job reads. migrate_offsets and audit_consumers read ZooKeeper's files, of
# which there are none there.
_INPUTS = {
    "validate_checksums": _ALL,
    "ingest_topics": _SHOP,
    "reconstruct_state": _SHOP,
    "verify_compaction": _ALL,
    "report_transactions": _ALL,
    "plan_recovery": _ALL,
    "plan_retention": _ALL,
    "report": _SHOP,
    "consumer_lag": _SHOP,
    "lag_history": _SHOP,
    "salvage": _ALL[:1],
}
_COLUMNS = ("what", "s", "÷ session", "processor s", "÷ session", f"within {_TARGET}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table. The status says nothing about the target."""
    options = _options(arguments)
    if options.part:
        print(json.dumps(_run(options.part, options.started)))
        return 0
    parts = [_SESSION, _SMALL_SESSION, *(options.only or _INPUTS)]
    before = load()
    _taken(_SESSION)  # Makes the archive of Spark's classes, and brings files into memory.
    taken: dict[str, list[tuple[float, float]]] = {part: [] for part in parts}
    for _ in range(options.rounds):
        for part in parts:
            taken[part].append(_taken(part))
            progress(f"{part}: {taken[part][-1][0]:.1f} s, processors {taken[part][-1][1]:.1f} s")
    print(f"{machine(('pyspark', 'delta-spark'), 'all')}; {before} before, {load()} after\n")
    print(table(_COLUMNS, _rows(taken), left=1))
    return 0


def _rows(taken: dict[str, list[tuple[float, float]]]) -> Iterator[tuple[str, ...]]:
    """Medians of the rounds, and of their ratios."""
    for part, rounds in taken.items():
        cells = [part]
        ratios = []
        for number in range(2):
            compared = zip(rounds, taken[_SESSION], strict=True)
            ratios.append(statistics.median(own[number] / other[number] for own, other in compared))
            seconds = statistics.median(each[number] for each in rounds)
            cells += [f"{seconds:.1f}", f"{ratios[number]:.2f}"]
        yield (*cells, "yes" if ratios[0] <= _TARGET else "no")


def _taken(part: str) -> tuple[float, float]:
    """Seconds that a part took and that it kept processors busy, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.job_start", "--part", part]
    command += ["--started", str(time.time())]
    (seconds, busy), _ = part_output(command, submit_arguments(jars=given_jars()))
    return seconds, busy


def _run(part: str, started: float) -> tuple[float, float]:
    """Raises ValueError where a job fails."""
    with tempfile.TemporaryDirectory() as output, redirect_stdout(sys.stderr):
        if part in (_SESSION, _SMALL_SESSION):
            _empty_session(output, compiles_less=part == _SMALL_SESSION)
        else:
            _run_job(part, output)
    return time.time() - started, busy_seconds()


def _empty_session(output: str, *, compiles_less: bool) -> None:
    from benchmarks.spark.prebuilt_source import tiny
    from kafkalog.spark.session import job_session

    with job_session("empty", with_delta=True, compiles_less=compiles_less) as spark:
        tiny(spark).write.format("delta").save(os.path.join(output, "table"))


def _run_job(part: str, output: str) -> None:
    inputs = [str(_EXAMPLES / name) for name in _INPUTS[part]]
    arguments = [*inputs, "--output-dir", os.path.join(output, "tables")]
    if part == "salvage":
        arguments += ["--to", os.path.join(output, "salvaged")]
    code = import_module(f"jobs.{part}").main(arguments)
    if code not in (ExitCode.DONE, ExitCode.FINDINGS):
        raise ValueError(f"{part}: exit code {code}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.job_start", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument(
        "--only", nargs="+", choices=_INPUTS, metavar="JOB", help="measure these jobs"
    )
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
