"""A page about a log directory beside a check of the same files: `python -m benchmarks.report`.

Three topics of a broker that stopped cleanly, one of them compressed with zstd, with their indexes:
`kafkalog report` and `kafkalog check` in turn in the same run, each as a command with its start,
with as many processes as there are processors; and the package crc32c over the same bytes, by one
process. Processor seconds are those of all processes. Files are in the system's cache by then.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.inputs.linked_segments import write_segment
from benchmarks.measuring.processes import CommandRun, command_run
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table
from kafkalog.columns.batches.segment_batches import SegmentHeaders
from kafkalog.columns.batches.segment_options import SegmentOptions
from kafkalog.columns.batches.window import FileWindow
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.side_files import rebuild_side_files

_MEBIBYTE = 1024 * 1024
# Topic, codec, bytes of a value.
_TOPICS = (("plain", "none", 1024), ("small", "none", 100), ("packed", "zstd", 1024))
_CHECK, _REPORT, _CHECKSUMS = "kafkalog check", "kafkalog report", "crc32c, one process"
_COLUMNS = ("what", "s", "processor s", "s, times check", "processor s, times check")
_CRC = """
import sys, crc32c
for path in sys.argv[1:]:
    with open(path, "rb", buffering=0) as file:
        while data := file.read(4 << 20):
            crc32c.crc32c(data)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    before = load()
    log_dir = _log_dir(options.inputs / f"report-{options.size}", options.size, options.inputs)
    runs: dict[str, list[CommandRun]] = {}
    with tempfile.TemporaryDirectory() as page:
        commands = _commands(log_dir, page)
        # The first one compiles kernels, and brings the files into memory.
        for number in range(options.rounds + 1):
            for name, command in commands.items():
                found = command_run(command)
                if number:
                    runs.setdefault(name, []).append(found)
                    progress(f"{name}: {found.seconds:.2f} s, {found.busy_seconds:.2f} busy")
    size = sum(path.stat().st_size for path in log_dir.rglob("*.log"))
    used = "all of them"
    print(f"{machine(('kafkalog', 'numpy', 'pyarrow', 'crc32c'), used)}; {before}, {load()} after")
    print(
        f"\n{table(_COLUMNS, [_row(name, each, runs[_CHECK]) for name, each in runs.items()], 1)}"
    )
    print(f"\n{size:,} bytes in {len(_TOPICS)} topics; medians of {options.rounds} rounds.")
    return 0


def _row(name: str, own: Sequence[CommandRun], check: Sequence[CommandRun]) -> tuple[str, ...]:
    """Return the medians, and those of the ratios by round."""
    ratios = [
        (one.seconds / other.seconds, one.busy_seconds / other.busy_seconds)
        for one, other in zip(own, check, strict=True)
    ]
    return (
        name,
        *(f"{statistics.median(part):.2f}" for part in zip(*own, strict=True)),
        *(f"{statistics.median(part):.2f}" for part in zip(*ratios, strict=True)),
    )


def _commands(log_dir: Path, page: str) -> dict[str, list[str]]:
    kafkalog = [sys.executable, "-m", "kafkalog"]
    logs = sorted(map(str, log_dir.rglob("*.log")))
    return {
        _CHECK: [*kafkalog, "check", str(log_dir)],
        _REPORT: [*kafkalog, "report", str(log_dir), "--output-dir", page],
        _CHECKSUMS: [sys.executable, "-c", _CRC, *logs],
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--size", type=int, default=400, help="MiB of a topic (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default: %(default)s)")
    inputs_argument(parser)
    return parser.parse_args(arguments)


def _log_dir(directory: Path, size: int, inputs: Path) -> Path:
    """Return the log directory, made if it is not there."""
    if (directory / ".kafka_cleanshutdown").exists():
        return directory
    ends = []
    for topic, codec, value_bytes in _TOPICS:
        partition = directory / f"{topic}-0"
        partition.mkdir(parents=True, exist_ok=True)
        stem = partition / f"{0:020}"
        write_segment(stem.with_suffix(".log"), codec, value_bytes, inputs, size * _MEBIBYTE)
        ends.append(f"{topic} 0 {_write_indexes(stem)}")
    checkpoint = "\n".join(("0", str(len(ends)), *ends, ""))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (directory / name).write_text(checkpoint)
    (directory / "meta.properties").write_text("version=1\ncluster.id=report\nnode.id=1\n")
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return directory


def _write_indexes(stem: Path) -> int:
    """Write what a broker has beside a segment, and return where the log ends."""
    with InputFile(str(stem.with_suffix(".log"))) as file:
        made = rebuild_side_files(file, 0, ProducerState(), [])
        end = SegmentHeaders(FileWindow(file), SegmentOptions(0)).walk()
    stem.with_suffix(".index").write_bytes(made.index)
    stem.with_suffix(".timeindex").write_bytes(made.timeindex)
    (stem.parent / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (stem.parent / "partition.metadata").write_text(
        "version: 0\ntopic_id: 0H4d83YeSMWHXRmVQcPzUw\n"
    )
    return end


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
    sys.exit(main())
