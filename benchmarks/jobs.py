"""What each job takes, beside `kafkalog check` with all cores over the same files, which reads and
decodes every byte once: `python -m benchmarks.jobs`.

Each runs in processes of its own, on local[2] with a driver of 2 GiB, and writes Delta tables.
Spark's start is not in the time. Files are read once before, so that they are in memory. Input
`segments` is a segment of 1 GiB as eight partitions; there the job also runs on one processor, and
`kafkalog report` beside `kafkalog check`.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.inputs.lag_inputs import LagInput, write_lag_inputs
from benchmarks.inputs.linked_segments import linked_log_dir, write_segment
from benchmarks.inputs.state_inputs import write_inputs
from benchmarks.measuring.processes import (
    Measured,
    busy_seconds,
    given_jars,
    measured_process,
    on_one_processor,
    submit_arguments,
)
from benchmarks.measuring.report import inputs_argument, load, table
from kafkalog.exit_codes import ExitCode

CHECK, REPORT, PAGE = "kafkalog check", "kafkalog report", "report"
RECORDS, COMMITS, SEGMENTS = "records", "commits", "segments"
_CHECKSUMS = "validate_checksums"
_ONE_PROCESSOR = " on one processor"
# By input.
_PARTS = {
    RECORDS: (
        CHECK,
        _CHECKSUMS,
        "ingest_topics",
        "reconstruct_state",
        "verify_compaction",
        "report_transactions",
        "plan_recovery",
        "plan_retention",
        PAGE,
    ),
    COMMITS: (CHECK, "consumer_lag", "lag_history"),
    SEGMENTS: (CHECK, REPORT, _CHECKSUMS, _CHECKSUMS + _ONE_PROCESSOR),
}
_COLUMNS = ("input", "what", "s", "processor s", "MB/s", "÷ check's rate", "peak MiB")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    options = _options(arguments)
    if options.part:
        print(json.dumps(_run(options.part, options.logs)))
        return 0
    logs = _inputs(options)
    rows = []
    print(f"{load()} before", file=sys.stderr)
    for name, directory in logs.items():
        size = sum(path.stat().st_size for path in directory.rglob("*.log"))
        check: Measured | None = None
        for part in _PARTS[name]:
            if options.only and part not in (CHECK, *options.only):
                continue
            measured = _measured(part, directory, options.memory)
            check = check or measured
            rows.append(_row(name, part, size, measured, check))
            print(*rows[-1], sep="; ", file=sys.stderr)
    print(f"Python {platform.python_version()}, pyspark {version('pyspark')}, local[2], a driver")
    print(f"of {options.memory}; {load()} after")
    print(f"\n{table(_COLUMNS, rows)}")
    return 0


def _row(name: str, part: str, size: int, measured: Measured, check: Measured) -> tuple[str, ...]:
    return (
        f"{name}, {size / 1e6:,.0f} MB",
        part,
        f"{measured.seconds:.1f}",
        f"{measured.busy_seconds:.1f}",
        f"{size / 1e6 / measured.seconds:,.0f}",
        f"{check.seconds / measured.seconds:.2f}",
        f"{measured.peak_bytes / 2**20:,.0f}",
    )


def _inputs(options: argparse.Namespace) -> dict[str, Path]:
    """The log directories, made once, by the name of the input."""
    makers: dict[str, Callable[[Path], Path]] = {
        RECORDS: lambda place: records_input(place, options.records, options.keys),
        COMMITS: lambda place: write_lag_inputs(
            place / str(options.commits), LagInput(commits=options.commits)
        ),
        SEGMENTS: lambda place: _segments(place, options.codec, options.segments),
    }
    return {name: makers[name](options.inputs / name) for name in options.input_names}


def records_input(place: Path, records: int, keys: int) -> Path:
    """A log directory with so many records of so many keys, made once."""
    return write_inputs(place / f"{records}-of-{keys}-keys", records, keys)[0]


def _segments(place: Path, codec: str, count: int) -> Path:
    segment = place / codec / "segment"
    if not segment.exists():
        segment.parent.mkdir(parents=True, exist_ok=True)
        write_segment(segment, codec, 1024, place)
    return linked_log_dir(segment, count)


def _measured(part: str, logs: Path, memory: str) -> Measured:
    """One part in a fresh process. Raises CalledProcessError where it fails."""
    name = part.removesuffix(_ONE_PROCESSOR)
    command = [sys.executable, "-m", "benchmarks.jobs", "--part", name, "--logs", str(logs)]
    if part != name:
        command = [*on_one_processor(), *command]
    arguments = submit_arguments(cores=1 if part != name else 2, memory=memory, jars=given_jars())
    return measured_process(command, arguments)


def _run(part: str, logs: str) -> Measured:
    for path in Path(logs).rglob("*.log"):
        path.read_bytes()
    if part in (CHECK, REPORT):
        return _run_command(part, logs)
    from kafkalog.spark.session import job_session

    job = import_module(f"jobs.{part}").main
    # Each as the job itself would start it for these files.
    less = part != "report_transactions"
    with (
        job_session(part, with_delta=True, compiles_less=less) as spark,
        tempfile.TemporaryDirectory() as output,
    ):
        # Start a worker, and load its kernels.
        spark.read.format("kafkalog").load(logs).limit(1).collect()
        given = [logs, "--output-dir", output, "--format", "delta", "--show", "0"]
        return _timed(lambda: job(given[:3] if part == PAGE else given))


def _run_command(part: str, logs: str) -> Measured:
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", *part.split()]
        if part == REPORT:
            command += ["--output-dir", output]
        # The first run compiles kernels.
        subprocess.run([*command, str(next(Path(logs).rglob("*.log")))], check=False)
        return _timed(lambda: subprocess.run([*command, logs], check=False).returncode)


def _timed(run: Callable[[], int]) -> Measured:
    """Raises ValueError where the run fails."""
    started, busy = time.perf_counter(), busy_seconds()
    code = run()
    taken = Measured(0, time.perf_counter() - started, busy_seconds() - busy)
    if code not in (ExitCode.DONE, ExitCode.FINDINGS):
        raise ValueError(f"exit code {code}")
    return taken


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jobs", description=__doc__)
    sizes = (("--records", 20_000_000), ("--keys", 1_000_000), ("--commits", 10_000_000))
    for name, number in sizes:
        parser.add_argument(
            name, type=int, default=number, metavar="N", help="(default: %(default)s)"
        )
    parser.add_argument("--memory", default="2g", help="of the driver (default: %(default)s)")
    parser.add_argument(
        "--segments", type=int, default=8, metavar="N", help="of 1 GiB each (default: %(default)s)"
    )
    parser.add_argument("--only", nargs="+", metavar="JOB", help="measure these jobs")
    parser.add_argument("--codec", default="none", help="of segments (default: %(default)s)")
    parser.add_argument(
        "--input-names",
        nargs="+",
        choices=_PARTS,
        default=list(_PARTS),
        metavar="NAME",
        help="measure these of records, commits and segments",
    )
    inputs_argument(parser, Path(tempfile.gettempdir()) / "kafkalog-jobs")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--logs", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
