"""Commands over very many segments: `python -m benchmarks.many_segments`.

Makes partitions of small segments, a few and ten times as many, and measures the CPU time
that each command takes for a segment in both: the ratio is 1 where it is linear, and below where
the command's start counts. Beside them stands what any
reader has to do: list the directory, and ask for the size of each file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measuring.report import inputs_argument, load, machine, table
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.format.segment_writer import write_segment
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups

_TIMESTAMP_MS = 1_700_000_000_000
_COMMANDS = (
    ("ls", "--quick"),
    ("dump", "--offsets", "0:10"),
    ("find", "--topic", "orders", "--key", "key"),
    ("ls",),
    ("check", "--no-indexes"),
    ("check",),
    ("dump", "--output", os.devnull),
)
_PROGRAM = "from kafkalog.command_line.main import main; main()"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    counts = (options.segments // 10, options.segments)
    before = load()
    places = [_written(options.inputs, count) for count in counts]
    rows = [_row("os.scandir and stat", lambda place: _floor(place), places, counts)]
    rows.append(_row("planning", _plan, places, counts))
    for command in _COMMANDS:
        name = " ".join(("kafkalog", *command))
        rows.append(_row(name, partial(_run, command=command), places, counts))
    columns = ("what", *(f"{count:,} segments, s" for count in counts), "µs a segment", "ratio")
    print(f"{machine(())}; {before} before, {load()} after")
    print(
        "\nOne partition; one round; CPU time, with the start of commands; ratio of a segment's\n"
    )
    print(table(columns, rows, left=1))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_segments", description=__doc__)
    parser.add_argument(
        "--segments", type=int, default=100_000, help="of the larger (default: %(default)s)"
    )
    inputs_argument(parser, kept="the partitions are")
    return parser.parse_args(arguments)


def _written(inputs: Path, count: int) -> Path:
    """A log directory whose partition has so many segments, each of a batch, with its indexes."""
    place = inputs / f"segments-{count}"
    if (place / "meta.properties").exists():
        return place
    print(f"writing {count:,} segments", file=sys.stderr)
    directory = place / "orders-0"
    directory.mkdir(parents=True, exist_ok=True)
    for offset in range(count):
        record = Record(offset, _TIMESTAMP_MS + offset, 0, b"key", b"value")
        files = write_segment([write_batch([record])], offset).by_name
        for name, data in files.items():
            if not name.endswith(".snapshot"):
                (directory / name).write_bytes(data)
    (place / "meta.properties").write_text("version=1\nbroker.id=1\n")
    return place


def _row(
    name: str, work: Callable[[Path], object], places: Sequence[Path], counts: Sequence[int]
) -> tuple[str, ...]:
    seconds = []
    for place in places:
        begun = _cpu_seconds()
        work(place)
        seconds.append(_cpu_seconds() - begun)
    print(name, *(f"{took:.2f}" for took in seconds), file=sys.stderr)
    few, many = (max(took, 0.001) / count for took, count in zip(seconds, counts, strict=True))
    return (name, *(f"{took:.2f}" for took in seconds), f"{many * 1e6:,.0f}", f"{many / few:.2f}")


def _cpu_seconds() -> float:
    """Return the times of this process and of those that it has started: other processes count
    less."""
    found = os.times()
    return found.user + found.system + found.children_user + found.children_system


def _floor(place: Path) -> int:
    with os.scandir(place / "orders-0") as found:
        return sum(entry.stat().st_size for entry in found)


def _plan(place: Path) -> int:
    return len(planned_groups(read_options({"path": str(place)})))


def _run(place: Path, command: Sequence[str]) -> None:
    given = [sys.executable, "-c", _PROGRAM, *command, str(place)]
    subprocess.run(given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    raise SystemExit(main())
