"""Planning reads of very many segments: `python -m benchmarks.planning`.

Makes a tree of partitions with segments that are mostly holes, so that they take no room, and
measures what the driver does before the first task: listing alone, and whole plans.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measuring.report import inputs_argument, load, machine, table
from kafkalog.format.record_batch import write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.indexes import (
    OffsetEntry,
    TimeEntry,
    write_offset_index,
    write_time_index,
)
from kafkalog.storage.files.files import list_directory
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups

_MIB = 1024 * 1024
_SEGMENT_BYTES, _HALF = 64 * _MIB, 32 * _MIB
_OFFSETS = 1000  # of a segment
_OLD_MS, _NEW_MS = 1_600_000_000_000, 1_700_000_000_000
_PLANS: dict[str, dict[str, str]] = {
    "everything": {},
    "one topic of ten": {"subscribe": "topic-0"},
    "the newest time, by time indexes": {"fromTimestamp": str(_NEW_MS)},
    "segments in two parts, by offset indexes": {"maxPartitionBytes": str(_HALF)},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    before = load()
    place = options.inputs / f"planning-{options.partitions}-{options.segments}"
    if not (place / "meta.properties").exists():
        _write_tree(place, options.partitions, options.segments)
    rows = [("listing alone", *_best(options.rounds, lambda: _listing(place)))]
    for name, given in _PLANS.items():
        parsed = read_options({"path": str(place), **given})
        rows.append((name, *_best(options.rounds, partial(planned_groups, parsed))))
    columns = ("plan", "seconds", "tasks", "bytes of a task, pickled")
    print(f"{machine(())}; {before} before, {load()} after")
    print(
        f"\n{options.partitions} partitions of {options.segments} segments each; best of rounds\n"
    )
    print(table(columns, rows, left=1))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000, help="(default: %(default)s)")
    parser.add_argument(
        "--segments", type=int, default=100, help="of each partition (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    inputs_argument(parser, kept="the tree is")
    return parser.parse_args(arguments)


def _write_tree(place: Path, partitions: int, segments: int) -> None:
    print("writing the tree", file=sys.stderr)
    for number in range(partitions):
        directory = place / f"topic-{number % 10}-{number // 10}"
        directory.mkdir(parents=True, exist_ok=True)
        for segment in range(segments):
            is_newest = segment == segments - 1
            _write_segment(directory, segment * _OFFSETS, _NEW_MS if is_newest else _OLD_MS)
    (place / "meta.properties").write_text("version=1\nbroker.id=1\n")


def _write_segment(directory: Path, base: int, timestamp_ms: int) -> None:
    """A batch where the file begins and one in its middle, which ends where the segment does."""
    half = _OFFSETS // 2
    with (directory / f"{base:020d}.log").open("wb") as file:
        file.truncate(_SEGMENT_BYTES)
        for first, position in ((base, 0), (base + half, _HALF)):
            records = [Record(first, timestamp_ms, 0, None, None)]
            records.append(Record(first + half - 1, timestamp_ms, 0, None, None))
            file.seek(position)
            file.write(write_batch(records))
    last = base + _OFFSETS - 1
    index = write_offset_index([OffsetEntry(last, _HALF)], base)
    (directory / f"{base:020d}.index").write_bytes(index)
    times = write_time_index([TimeEntry(timestamp_ms, last)], base)
    (directory / f"{base:020d}.timeindex").write_bytes(times)


def _listing(place: Path) -> list[tuple[object, ...]]:
    """What any planning has to do: all directories, and the sizes of what is in them."""
    for entry in list_directory(os.fspath(place)):
        if entry.is_directory:
            list_directory(entry.path)
    return []


def _best(rounds: int, plan: Callable[[], Sequence[Sequence[object]]]) -> tuple[str, str, str]:
    """The best time, how many tasks there are, and the bytes that the largest takes with it."""
    seconds = []
    for _ in range(rounds):
        begun = time.perf_counter()
        groups = plan()
        seconds.append(time.perf_counter() - begun)
    largest = max((len(pickle.dumps(group)) for group in groups), default=0)
    return f"{min(seconds):.2f}", f"{len(groups):,}" if groups else "-", f"{largest:,}"


if __name__ == "__main__":
    raise SystemExit(main())
