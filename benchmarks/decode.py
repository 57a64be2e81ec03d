"""Decoding to Arrow, single core: `python -m benchmarks.decode`.

Measures kafkalog against the least that any reader has to do and against other readers, on the
same bytes, in turn; and whether it reaches its targets. All is from memory unless said otherwise;
files are in the system's cache by then.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contest import contest, targets
from benchmarks.inputs.broker_inputs import BrokerMissingError
from benchmarks.inputs.prepared import prepare
from benchmarks.inputs.wanted import BROKER, CODECS, GENERATED, MEGABYTE, RECORD_SIZES, Wanted
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table
from benchmarks.measuring.rounds import one_processor
from benchmarks.memory import NotMeasuredError, peak_growth

_PACKAGES = ("kafkalog", "numba", "numpy", "pyarrow", "cramjam", "isal", "crc32c")
_PEERS = ("aiokafka", "kafka-python", "python-snappy", "lz4", "zstandard")
_MEBIBYTE = 1024 * 1024
_INPUT_COLUMNS = ("input", "written by", "file MB", "MB of data", "records", "batches", "KiB/batch")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report. The status says nothing about targets."""
    options = _options(arguments)
    wanted = Wanted(
        options.codecs, options.record_sizes, int(options.size * MEGABYTE), options.inputs
    )
    try:
        inputs = prepare(wanted, options.origin, progress)
    except BrokerMissingError as error:
        print(f"no real broker here: {error}", file=sys.stderr)
        return 1
    rows: list[tuple[str, ...]] = []
    described: list[tuple[str, ...]] = []
    before = load()
    shares: list[float] = []
    with one_processor(options.cpu):
        for item in inputs:
            progress(f"measuring {item.label}")
            held = contest.hold(item, options.rounds)
            described.append(_described(held))
            shares.append(held.busy_share)
            rows += targets.rows(held)
            if options.memory_size:
                rows.append(_memory(held, options.memory_size * _MEBIBYTE, options.inputs))
    print(f"{machine((*_PACKAGES, *_PEERS))}; {before} before, {load()} after")
    print(f"\n{table(_INPUT_COLUMNS, described)}\n\n{table(targets.COLUMNS, rows)}\n")
    print(_explanation(options.rounds, min(shares)))
    print(_verdict(rows))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode", description=__doc__)
    parser.add_argument(
        "--size",
        type=float,
        default=128,
        metavar="MB",
        help="values in each file (default: %(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=15,
        help="turns that each contender takes (default: %(default)s)",
    )
    parser.add_argument(
        "--codecs",
        type=_chosen_codecs,
        default=CODECS,
        metavar="LIST",
        help=f"of {','.join(CODECS)} (default: all)",
    )
    parser.add_argument(
        "--record-sizes",
        type=_numbers,
        default=RECORD_SIZES,
        metavar="LIST",
        help=f"bytes of a value (default: {','.join(map(str, RECORD_SIZES))})",
    )
    parser.add_argument(
        "--memory-size",
        type=int,
        default=1024,
        metavar="MIB",
        help="file to measure peak memory with, 0 for none (default: %(default)s)",
    )
    parser.add_argument(
        "--cpu", type=int, metavar="N", help="the processor to run on (default: the last)"
    )
    inputs_argument(parser)
    origin = parser.add_mutually_exclusive_group()
    origin.add_argument(
        "--broker",
        dest="origin",
        action="store_const",
        const=BROKER,
        help="files of a real producer and broker, or none (needs Java, Maven)",
    )
    origin.add_argument(
        "--generated",
        dest="origin",
        action="store_const",
        const=GENERATED,
        help="files of kafkalog's own writer (default: a broker's where possible)",
    )
    return parser.parse_args(arguments)


def _chosen_codecs(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := set(chosen) - set(CODECS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return chosen


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _described(held: contest.Contest) -> tuple[str, ...]:
    size, batches = len(held.segment.data), len(held.segment.batches)
    return (
        held.input.label,
        held.input.origin,
        f"{size / 1e6:,.1f}",
        f"{held.data_bytes / 1e6:,.1f}",
        f"{held.segment.records:,}",
        f"{batches:,}",
        f"{size / batches / 1024:,.1f}",
    )


def _memory(held: contest.Contest, size: int, directory: Path) -> tuple[str, ...]:
    progress(f"measuring peak memory, {held.input.label}")
    try:
        growth = peak_growth(held.segment, size, directory)
    except NotMeasuredError as error:
        return targets.memory_row(held.input.label, size, None, f"not measured: {error}")
    return targets.memory_row(held.input.label, size, growth)


def _explanation(rounds: int, busy_share: float) -> str:
    return (
        "MB/s: bytes of keys and values a second, in millions, median; parts of records and"
        " headers by the bytes that they stand for. Ratios: medians of the ratios of"
        f" {rounds} rounds, in brackets the quartiles. All who read records check checksums unless"
        " said otherwise. The slower the reader, the smaller its share of the file: aiokafka an"
        " eighth, kafka-python a 32nd. Their rows were compared with kafkalog's, and equal."
        f" The process had its processor for at least {busy_share:.0%} of the time."
    )


def _verdict(rows: Sequence[Sequence[str]]) -> str:
    reached = [row[-1] == "yes" for row in rows if row[-1]]
    missed = [f"{row[0]}: {row[1]}" for row in rows if row[-1] not in ("", "yes")]
    text = f"{sum(reached)} of {len(reached)} targets reached"
    return f"{text}; missed: {'; '.join(missed)}" if missed else text


if __name__ == "__main__":
    sys.exit(main())
