"""How long the lag of very many groups takes, and how much memory: `python -m benchmarks.lag`.

Each measurement runs in a process of its own: reading all commits on one processor, as a task does,
`kafkalog groups` with all, and the jobs on local[2] with a driver of 2 GiB; with `--against` the
same jobs of another commit too. Linux only.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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

_COLUMNS = ("what", "s", "processor s", "commits/s", "peak MiB", "times as fast")
_PROJECT = Path(__file__).parents[1]
_GROUPS = "kafkalog groups"
_JOBS = ("consumer_lag", "lag_history")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    size = LagInput(options.groups, commits=options.commits, records=options.records)
    if options.part:
        print(json.dumps(_PARTS[options.part](options.inputs / "log-dir")))
        return 0
    before = load()
    write_lag_inputs(options.inputs, size)
    found: dict[str, Measured] = {}
    then: dict[str, Measured] = {}
    with _files_of(options.against) if options.against else nullcontext(_PROJECT) as project:
        for part in options.only:
            found[part] = _measured(part, options, _PROJECT)
            print(f"{part}: {found[part]}", file=sys.stderr)
            if part in _JOBS and options.against:
                then[part] = _measured(part, options, project)
                print(f"{part} at {options.against}: {then[part]}", file=sys.stderr)
    rows = [_row(part, found[part], size.commits, then.get(part)) for part in found]
    rows += [_row(f"{part} at {options.against}", then[part], size.commits) for part in then]
    groups = f"{size.groups:,} groups of {size.partitions} partitions"
    print(f"Python {platform.python_version()}, pyspark {version('pyspark')}")
    print(f"{groups}, {size.commits:,} commits, {size.records:,} records")
    print(f"{before} before, {load()} after\n\n{table(_COLUMNS, rows, left=1)}")
    return 0


def _row(
    part: str, measured: Measured, commits: int, then: Measured | None = None
) -> tuple[str, ...]:
    return (
        part,
        f"{measured.seconds:.1f}",
        f"{measured.busy_seconds:.1f}",
        f"{commits / measured.seconds:,.0f}",
        f"{measured.peak_bytes / 2**20:,.0f}",
        "" if then is None else f"{then.seconds / measured.seconds:.1f}",
    )


def _measured(part: str, options: argparse.Namespace, project: Path) -> Measured:
    """One part in a fresh process. Raises CalledProcessError where it fails."""
    if part in _JOBS:
        runner = str(_PROJECT / "benchmarks" / "spark" / "job_of_commit.py")
        command = [sys.executable, runner, str(project), part, str(options.inputs / "log-dir")]
    else:
        command = [sys.executable, "-m", "benchmarks.lag", "--part", part]
        command += ["--inputs", str(options.inputs)]
    return measured_process(command, submit_arguments(memory=options.memory))


@contextmanager
def _files_of(commit: str) -> Iterator[Path]:
    """The project's files at a commit. Raises CalledProcessError where Git does not have it."""
    with tempfile.TemporaryDirectory() as directory:
        files = subprocess.run(
            ["git", "archive", commit], cwd=_PROJECT, stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "--extract"], cwd=directory, input=files.stdout, check=True)
        yield Path(directory)


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


def _run_groups(log_dir: Path) -> Measured:
    """The command, its start counted."""
    command = [sys.executable, "-m", "kafkalog", "groups", str(log_dir), "--format", "csv"]
    started, busy = time.perf_counter(), busy_seconds()
    process = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    seconds, busy = time.perf_counter() - started, busy_seconds() - busy
    return Measured(process.stdout.count(b"\n") - 1, seconds, busy)


_PARTS: dict[str, Callable[[Path], Measured]] = {
    "view offset_commits, one process": _read_commits,
    _GROUPS: _run_groups,
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
    parser.add_argument("--against", metavar="COMMIT", help="whose jobs are measured too")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=(*_PARTS, *_JOBS),
        default=(*_PARTS, *_JOBS),
        metavar="PART",
        help="(default: all)",
    )
    parser.add_argument("--part", choices=tuple(_PARTS), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
