"""`kafkalog export` to Parquet beside the least that any writer has to do: `python -m
benchmarks.export`.

The floor reads a segment, checks the checksum of each batch, decompresses it, copies the records
into pages of 1 MiB, compresses these with the codec and level of the table, and forces them to
disk: by the libraries that kafkalog has, and without a look at a record. Command and floor run in
turn, each on all of a topic by one process with its start. Processor seconds, the least of all
rounds, are compared. Files are in the system's cache by then.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from benchmarks.inputs.linked_segments import write_segment
from benchmarks.inputs.segments import CHECKSUM_START, HEADER_BYTES
from benchmarks.inputs.wanted import tables_arguments
from benchmarks.measuring.processes import command_run
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table
from kafkalog.wire.compression import decompress_into

_MEBIBYTE = 1024 * 1024
_PAGE_BYTES = _MEBIBYTE
_BUFFER_BYTES = 8 * _MEBIBYTE
_LEVEL = 1  # Arrow's own for zstd, and so kafkalog's
_COLUMNS = (
    *("topic", "Parquet", "floor, processor s", "of that decompressor", "compressor"),
    *("export, processor s", "times the floor", "beyond it, s", "MB written", "by the floor"),
)


class _Floor(NamedTuple):
    """Seconds of the libraries, and bytes written."""

    decompressor: float
    compressor: float
    written: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    if options.floor:
        print(json.dumps(_floor(options.floor, options.to, options.compressions[0])))
        return 0
    before, rows = load(), []
    options.inputs.mkdir(parents=True, exist_ok=True)
    for record_size in options.record_sizes:
        for codec in options.codecs:
            log_dir = _log_dir(options.inputs, codec, record_size, options.size)
            for compression in options.compressions:
                rows.append(_measured(log_dir, compression, options))
                progress(" ".join(rows[-1]))
    print(f"{machine(('kafkalog', 'pyarrow', 'cramjam'))}; {before}, {load()} after")
    print(f"\n{table(_COLUMNS, rows, left=2)}")
    print(f"\n{options.size} MiB in each topic; least of {options.rounds} rounds.")
    return 0


def _measured(log_dir: Path, compression: str, options: argparse.Namespace) -> tuple[str, ...]:
    (segment,) = log_dir.rglob("*.log")
    least: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=options.inputs) as scratch:
        page = Path(scratch, "floor")
        own = ["-m", "benchmarks.export", "--floor", str(segment), "--to", str(page)]
        floor = [sys.executable, *own, "--compressions", compression]
        for number in range(options.rounds + 1):
            output = Path(scratch, str(number))
            export = [sys.executable, "-m", "kafkalog", "export", str(log_dir), "--processes", "1"]
            export += ["--output-dir", str(output), "--compression", compression]
            for name, command in (("floor", floor), ("export", export)):
                busy = command_run(command).busy_seconds
                # The first one compiles kernels, and brings the files into memory.
                if number:
                    least[name] = min(least.get(name, busy), busy)
            found = _Floor(*json.loads(page.with_suffix(".json").read_text()))
            written = sum(path.stat().st_size for path in output.rglob("*.parquet"))
    return (
        log_dir.name,
        compression,
        f"{least['floor']:.2f}",
        f"{found.decompressor:.2f}",
        f"{found.compressor:.2f}",
        f"{least['export']:.2f}",
        f"{least['export'] / least['floor']:.2f}",
        f"{least['export'] - least['floor']:.2f}",
        f"{written / 1e6:,.0f}",
        f"{found.written / 1e6:,.0f}",
    )


def _floor(segment: Path, output: Path, compression: str) -> _Floor:
    """Write all payloads of a segment in pages; what the libraries took."""
    codec = None if compression == "none" else pa.Codec(compression, _LEVEL)
    decompressor = compressor = 0.0
    scratch = np.empty(_BUFFER_BYTES, dtype=np.uint8).data
    page, used = memoryview(bytearray(_PAGE_BYTES)), 0
    with output.open("wb", buffering=0) as target:
        for codec_id, payload in _payloads(segment):
            if codec_id:
                begun = time.thread_time()
                payload = scratch[: decompress_into(codec_id, 2, payload, scratch)]
                decompressor += time.thread_time() - begun
            while len(payload):
                some = payload[: _PAGE_BYTES - used]
                page[used : used + len(some)] = some
                payload, used = payload[len(some) :], used + len(some)
                if used == _PAGE_BYTES:
                    begun = time.thread_time()
                    written = page if codec is None else codec.compress(page)
                    compressor += time.thread_time() - begun
                    target.write(written)
                    used = 0
        written = page[:used] if codec is None else codec.compress(page[:used])
        target.write(written)
        os.fsync(target.fileno())
    found = _Floor(decompressor, compressor, output.stat().st_size)
    output.with_suffix(".json").write_text(json.dumps(found))
    return found


def _payloads(segment: Path) -> Iterator[tuple[int, memoryview]]:
    """The codec and the payload of each batch, whose checksum is right."""
    buffer, filled = memoryview(bytearray(_BUFFER_BYTES)), 0
    with segment.open("rb", buffering=0) as file:
        while count := file.readinto(buffer[filled:]):
            filled, position = filled + count, 0
            while filled - position >= HEADER_BYTES:
                end = position + 12 + int.from_bytes(buffer[position + 8 : position + 12])
                if end > filled:
                    break
                stored = int.from_bytes(buffer[position + 17 : position + CHECKSUM_START])
                if crc32c(buffer[position + CHECKSUM_START : end]) != stored:
                    raise ValueError(f"the batch at {file.tell() - filled + position} is damaged")
                yield buffer[position + 22] & 7, buffer[position + HEADER_BYTES : end]
                position = end
            buffer[: filled - position] = bytes(buffer[position:filled])
            filled -= position


def _log_dir(inputs: Path, codec: str, record_size: int, size: int) -> Path:
    """A log directory with one segment, made once."""
    partition = inputs / f"export-{size}" / f"{codec} {record_size} B" / "topic-0"
    segment = partition / f"{0:020}.log"
    if not segment.exists():
        partition.mkdir(parents=True, exist_ok=True)
        write_segment(segment, codec, record_size, inputs, size * _MEBIBYTE)
    return partition.parent


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.export", description=__doc__)
    parser.add_argument("--size", type=int, default=512, metavar="MIB", help="of each segment")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each takes")
    tables_arguments(parser)
    inputs_argument(parser)
    parser.add_argument("--floor", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--to", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
    sys.exit(main())
