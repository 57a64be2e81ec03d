"""Checking the indexes of a segment against its log: `python -m benchmarks.index_check`.

Measures kafkalog against kafka-dump-log 4.3.1 on the same files in the same run, at growing sizes:
an index check is to be linear in the file. Files are in the system's cache by then. The tool's own
start, about half a second, is part of its time; the smallest size shows it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.measuring.report import inputs_argument, load, machine, progress, table
from benchmarks.measuring.rounds import one_processor
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.columns.jit.compiled import LongArray
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.indexes import OFFSET_ENTRY, TIME_ENTRY
from kafkalog.inspection.indexes.index_check import SegmentIndexes, check_indexes
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.recovery.side_files import rebuild_side_files
from tests.support.broker.class_paths import ClassPathError
from tests.support.broker.java_tools import ToolError, run_tool

_MEBIBYTE = 1024 * 1024
_SIZES = (1, 4, 16, 128, 1024)
_RECORDS, _VALUE_BYTES = 8, 120
_TOOL = "org.apache.kafka.tools.DumpLogSegments"
_PACKAGES = ("kafkalog", "numpy")
_COLUMNS = (
    "MiB",
    "entries",
    "kafkalog, both indexes: s",
    "of it headers: s",
    "dump-log, .index: s",
    "dump-log, .timeindex: s",
    "dump-log / kafkalog",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    before = load()
    rows = []
    with one_processor(None):
        for size in options.sizes:
            progress(f"a segment of {size} MiB")
            log = _segment(options.inputs / f"index-check-{size}", size * _MEBIBYTE)
            rows.append(_row(log, size, options))
    print(f"{machine(_PACKAGES)}; {before} before, {load()} after")
    print(f"\n{table(_COLUMNS, rows, left=0)}\n")
    print(
        f"The best of {options.rounds} rounds in which all take turns; batches of {_RECORDS} "
        f"records of {_VALUE_BYTES} bytes, an entry for every 4,096 bytes or more. The ratio is "
        "that of .index alone where the tool was not done with .timeindex within "
        f"{options.patience} s, or its check was left out: its time for that grows with the "
        "square of the file."
    )
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index_check", description=__doc__)
    parser.add_argument(
        "--sizes",
        type=lambda text: tuple(int(number) for number in text.split(",")),
        default=_SIZES,
        metavar="LIST",
        help=f"MiB of the segments (default: {','.join(map(str, _SIZES))})",
    )
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument(
        "--patience",
        type=int,
        default=120,
        metavar="SECONDS",
        help="how long the tool may take for one file (default: %(default)s)",
    )
    parser.add_argument(
        "--time-index-up-to",
        type=int,
        default=16,
        metavar="MIB",
        help="the largest segment that the tool checks the .timeindex of (default: %(default)s)",
    )
    inputs_argument(parser)
    return parser.parse_args(arguments)


def _segment(directory: Path, size: int) -> Path:
    """A log file of that size with its indexes, kept from the last time if it is there."""
    log = directory / f"{0:020d}.log"
    if log.with_suffix(".timeindex").exists():
        return log
    directory.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        written = first = 0
        while written < size:
            batch = write_batch(
                [
                    Record(first + i, 1_700_000_000_000 + first + i, 0, None, b"v" * _VALUE_BYTES)
                    for i in range(_RECORDS)
                ]
            )
            written += file.write(batch)
            first += _RECORDS
    with InputFile(str(log)) as source:
        files = rebuild_side_files(source, 0)
    log.with_suffix(".index").write_bytes(files.index)
    log.with_suffix(".timeindex").write_bytes(files.timeindex)
    return log


def _row(log: Path, size: int, options: argparse.Namespace) -> tuple[str, ...]:
    index, timeindex = log.with_suffix(".index"), log.with_suffix(".timeindex")
    entries = index.stat().st_size // OFFSET_ENTRY.size
    entries += timeindex.stat().st_size // TIME_ENTRY.size
    contenders: dict[str, Callable[[], None]] = {
        "both": lambda: _check(log),
        "headers": lambda: _walk(log),
        "index": lambda: _dump(index, options.patience),
    }
    if size <= options.time_index_up_to:
        contenders["timeindex"] = lambda: _dump(timeindex, options.patience)
    best: dict[str, float] = {}
    notes: dict[str, str] = {}
    for number in range(options.rounds):
        progress(f"round {number + 1}")
        for name, run in contenders.items():
            if name not in notes:
                try:
                    seconds = _timed(run)
                except (ClassPathError, ToolError) as error:
                    notes[name] = "-"
                    progress(f"{name}: {str(error).splitlines()[0]}")
                    continue
                best[name] = min(seconds, best.get(name, seconds))
    told = {
        name: f"{best[name]:.2f}" if name in best and name not in notes else notes.get(name, "-")
        for name in ("both", "headers", "index", "timeindex")
    }
    peer = sum(best[name] for name in ("index", "timeindex") if name in best)
    ratio = f"{peer / best['both']:.1f}" if peer else "-"
    return (f"{size:,}", f"{entries:,}", *told.values(), ratio)


def _timed(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _tables(log: Path) -> Iterator[LongArray]:
    with InputFile(str(log)) as file:
        options = SegmentOptions(0, check_crcs=False)
        for chunk in SegmentHeaders(FileWindow(file), options).chunks():
            yield chunk.table


def _walk(log: Path) -> None:
    for _ in _tables(log):
        pass


def _check(log: Path) -> None:
    index, timeindex = (log.with_suffix(suffix).read_bytes() for suffix in (".index", ".timeindex"))
    indexes = SegmentIndexes(0, index, timeindex, None, is_active=False, is_trimmed=True)
    found = check_indexes(_tables(log), indexes)
    if found:
        raise AssertionError(f"{log}: {found}")


def _dump(file: Path, patience: int) -> None:
    """Let kafka-dump-log check one index without printing it."""
    arguments = ["--verify-index-only", "--files", str(file)]
    said = run_tool(
        _TOOL, arguments, java_options=("-Xmx2g", "-XX:+UseSerialGC"), timeout_seconds=patience
    )
    if b"ismatch" in said.stderr or b"not found" in said.stderr:
        raise AssertionError(said.text)


if __name__ == "__main__":
    sys.exit(main())
