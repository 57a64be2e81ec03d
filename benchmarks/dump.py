"""`kafkalog dump --deep` beside kafka-dump-log on the same segments, in the same run.

    python -m benchmarks.dump [--size MIB] [--segments N] [--rounds N] [--codecs none,lz4,zstd]

Both are timed as a user calls them: each run is a process of its own for all segments, the start of
the JVM and that of Python are in it. Output goes to /dev/null: a file of gigabytes would time the
disk, and who reads a pipe takes a core of the two that are measured. Before anything is timed, both
print to a file once, and have to print as many records.

Processor time is reported as well as elapsed time, because other processes on the machine change it
less.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import BinaryIO

from benchmarks.inputs.prepared import prepare
from benchmarks.inputs.wanted import Wanted
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table
from benchmarks.measuring.rounds import Contender, measure, ratio
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.recovery.side_files import rebuild_side_files
from tests.support.broker.class_paths import class_path

_TOOL = "org.apache.kafka.tools.DumpLogSegments"
# As kafka-run-class.sh starts the tools, but for logging.
_JAVA = ("java", "-Xmx256M", "-server", "-XX:+UseG1GC", "-Djava.awt.headless=true")
_NAMES = ("kafka-dump-log", "kafkalog", "one process")
# What is printed: the tool's options, and ours.
_WAYS = {
    "records with keys and values": (("--deep-iteration", "--print-data-log"), ("--deep",)),
    "records without them": (("--deep-iteration",), ("--deep", "--no-payloads")),
    "batches": ((), ()),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    options = _options(arguments)
    wanted = Wanted(options.codecs.split(","), (options.record_size,), options.size, options.inputs)
    rows = []
    for item in prepare(wanted, options.origin, progress):
        logs = [_segment(item.path, number, options.inputs) for number in range(options.segments)]
        for way in _WAYS:
            progress(f"{item.codec}, {way}")
            rows.append((item.codec, way, *_measured(logs, way, options)))
    print(f"{machine(('pyarrow', 'numba'), 'all')}; {load()}\n")
    header = ("codec", "printed", *(f"{name} s (processors)" for name in _NAMES), "times")
    print(table(header, rows))
    return 0


def _segment(path: Path, partition: int, inputs: Path) -> Path:
    """The segment as one of a partition of its own, with an index, as brokers make it."""
    log = inputs / f"dump-{path.stem}-{partition}" / f"{0:020d}.log"
    if not log.exists():
        log.parent.mkdir(parents=True, exist_ok=True)
        log.hardlink_to(path)
        with InputFile(str(log)) as source:
            log.with_suffix(".index").write_bytes(rebuild_side_files(source, 0).index)
    return log


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.dump", description=__doc__)
    parser.add_argument("--size", type=int, default=128, help="MiB of values (default: 128)")
    parser.add_argument("--record-size", type=int, default=100, help="bytes (default: 100)")
    parser.add_argument("--segments", type=int, default=1, help="how many (default: 1)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codecs", default="none,lz4,zstd", help="default: none,lz4,zstd")
    parser.add_argument("--origin", default="generated", help="generated, or broker")
    inputs_argument(parser)
    options = parser.parse_args(arguments)
    options.size *= 1024 * 1024
    return options


def _measured(logs: Sequence[Path], way: str, options: argparse.Namespace) -> tuple[str, ...]:
    theirs, ours = _WAYS[way]
    tool = [*_JAVA, "-cp", class_path("tools"), _TOOL, *theirs, "--files", ",".join(map(str, logs))]
    command = [sys.executable, "-m", "kafkalog", "dump", *ours, *map(str, logs)]
    mark = b"\nbaseOffset: " if way == "batches" else b"\n| offset: "
    commands = tool, command, [*command, "--processes", "1"]
    counts = {_printed(line, mark, options.inputs / "dumped") for line in commands}
    if len(counts) != 1:
        raise SystemExit(f"{way}: not as many records: {sorted(counts)}")
    contenders, busy = [], []
    for name, line in zip(_NAMES, commands, strict=True):
        seconds: list[float] = []
        contenders.append(Contender(name, partial(_run, line, seconds), 0))
        busy.append(seconds)
    measure(contenders, options.rounds)
    told = [
        f"{contender.median_seconds:.2f} ({median(seconds):.2f})"
        for contender, seconds in zip(contenders, busy, strict=True)
    ]
    return *told, str(ratio(contenders[0], contenders[1]))


def _printed(command: Sequence[str], mark: bytes, output: Path) -> int:
    """How many batches or records are printed."""
    try:
        with output.open("wb") as file:
            _process(command, file)
        return output.read_bytes().count(mark)
    finally:
        output.unlink(missing_ok=True)


def _run(command: Sequence[str], busy: list[float]) -> int:
    """Print to nowhere; note how long processors were busy."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.devnull, "wb") as nowhere:
        _process(command, nowhere)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 0


def _process(command: Sequence[str], output: BinaryIO) -> None:
    # As installed packages are: their modules compiled.
    unwanted = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    subprocess.run(command, stdout=output, stderr=subprocess.DEVNULL, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
