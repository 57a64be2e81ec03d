"""Two processors beside one, and memory beside the input's size: `python -m benchmarks.scaling`.

Every column of every record goes to nowhere, on local[2] and on local[1] with one processor, in
turn; then from inputs of different sizes on local[2]. Segments are made by kafkalog's writer from
generated records; partitions are hard links to one of them, so that the disk plays no part. Linux
only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.inputs.linked_segments import SEGMENT_BYTES, linked_log_dir, write_segment
from benchmarks.measuring.processes import (
    busy_seconds,
    on_one_processor,
    part_output,
    submit_arguments,
    worker_peak_bytes,
)
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table

_TARGET = 1.8
_READS = 4  # of which the first is not counted: it starts Spark's workers


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report. The status says nothing about targets."""
    options = _options(arguments)
    if options.part:
        print(json.dumps(_read(options.part, options.reads)))
        return 0
    options.inputs.mkdir(parents=True, exist_ok=True)
    before = load()
    with tempfile.TemporaryDirectory(dir=options.inputs.resolve()) as scratch:
        segment = Path(scratch) / "segment"
        write_segment(segment, options.codec, options.record_size, options.inputs)
        scaling = _scaling(segment, options.rounds)
        memory = [_memory(segment, gigabytes) for gigabytes in options.gigabytes]
    on = machine(("kafkalog", "pyspark", "pyarrow", "numba"), "all")
    print(f"{on}; {before} before, {load()} after")
    print(f"{options.codec}, values of {options.record_size} bytes\n")
    header = ("local[1], one processor, MB/s", "local[2], MB/s", "times as fast", "to reach", "")
    print(table(header, [scaling], left=0))
    columns = ("GiB read", "largest Python worker, MiB", "all processes, MiB", "s")
    print(f"\n{table(columns, memory, left=0)}")
    return 0


def _scaling(segment: Path, rounds: int) -> tuple[str, ...]:
    log_dir = linked_log_dir(segment, 4)
    size = 4 * segment.stat().st_size
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for cores, found in rates.items():
            seconds = _part(log_dir, cores, _READS)[0]
            found.append(size / seconds / 1e6)
            progress(f"local[{cores}]: {found[-1]:,.0f} MB/s")
    one, two = (statistics.median(found) for found in rates.values())
    ratio = statistics.median(b / a for a, b in zip(*rates.values(), strict=True))
    reached = "reached" if ratio >= _TARGET else "missed"
    return f"{one:,.0f}", f"{two:,.0f}", f"{ratio:.2f}", f"{_TARGET:g}", reached


def _memory(segment: Path, gigabytes: int) -> tuple[str, ...]:
    partitions = gigabytes * 2**30 // SEGMENT_BYTES
    seconds, worker_bytes, peak_bytes = _part(linked_log_dir(segment, partitions), 2, 1)
    progress(f"{gigabytes} GiB: {worker_bytes / 2**20:,.0f} MiB")
    return (
        str(gigabytes),
        f"{worker_bytes / 2**20:,.0f}",
        f"{peak_bytes / 2**20:,.0f}",
        f"{seconds:.1f}",
    )


def _part(log_dir: Path, cores: int, reads: int) -> tuple[float, int, int]:
    """Seconds, the largest Python worker's bytes, and the bytes of all processes."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--part", str(log_dir)]
    command += ["--reads", str(reads)]
    if cores == 1:
        command = [*on_one_processor(), *command]
    (seconds, worker_bytes), peak_bytes = part_output(
        command, submit_arguments(cores=cores, memory="1g")
    )
    return seconds, worker_bytes, peak_bytes


def _read(log_dir: str, reads: int) -> tuple[float, int]:
    from kafkalog.spark.session import job_session

    taken = []
    with job_session("scaling", with_delta=False) as spark:
        for _ in range(reads):
            started, busy = time.perf_counter(), busy_seconds()
            frame = spark.read.format("kafkalog").load(log_dir)
            frame.write.format("noop").mode("overwrite").save()
            taken.append(time.perf_counter() - started)
            progress(f"{taken[-1]:.2f} s, processors {busy_seconds() - busy:.2f} s")
        return statistics.median(taken[1:] or taken), worker_peak_bytes()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--reads", type=int, default=_READS, help=argparse.SUPPRESS)
    parser.add_argument("--codec", default="none", help="default: %(default)s")
    parser.add_argument(
        "--record-size", type=int, default=1024, metavar="BYTES", help="default: %(default)s"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="turns that each takes (default: %(default)s)"
    )
    parser.add_argument(
        "--gigabytes",
        type=lambda text: [int(number) for number in text.split(",")],
        default=[1, 4, 16],
        metavar="LIST",
        help="sizes to measure memory with (default: 1,4,16)",
    )
    inputs_argument(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
