"""The libraries considered for each codec, on Kafka's payloads: `python -m benchmarks.codecs`.

Each decompresses the payloads of the same batches, a batch at a time, on one core, in turn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.contest.codec_libraries import CHECKSUMS, LIBRARIES, Checksum, Decompress, find
from benchmarks.contest.same_work import DifferentWorkError
from benchmarks.inputs.broker_inputs import BrokerMissingError
from benchmarks.inputs.prepared import prepare
from benchmarks.inputs.segments import HEADER_BYTES, Segment, read_segment
from benchmarks.inputs.wanted import BROKER, GENERATED, MEGABYTE, Input, Wanted
from benchmarks.measuring.report import machine, table
from benchmarks.measuring.rounds import Contender, measure, one_processor, ratio

_PACKAGES = (
    *("crc32c", "cramjam", "isal", "pyarrow", "zlib-ng", "deflate", "python-snappy"),
    *("lz4", "zstandard", "backports.zstd", "google-crc32c", "aiokafka"),
)
_COLUMNS = ("payloads", "library", "MB/s", "time ÷ kafkalog's choice")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    size = int(options.size * MEGABYTE)
    wanted = Wanted((*LIBRARIES, "none"), (options.record_size,), size, options.inputs)
    try:
        inputs = prepare(wanted, options.origin, lambda text: print(f"… {text}", file=sys.stderr))
    except BrokerMissingError as error:
        print(f"no real broker here: {error}", file=sys.stderr)
        return 1
    rows: list[tuple[str, ...]] = []
    with one_processor(options.cpu):
        for item in inputs:
            print(f"… measuring {item.label}", file=sys.stderr)
            segment = read_segment(item.path).leading(options.part / options.size)
            compare = _compare_checksums if item.codec == "none" else _compare_libraries
            rows += compare(item, segment, options.rounds)
    print(machine(_PACKAGES))
    print(f"payloads written by: {inputs[0].origin}\n")
    print(table(_COLUMNS, rows))
    print(
        "\nMB/s: decompressed bytes a second, in millions, median; of checksums, bytes checked."
        f" Ratios: medians of the ratios of {options.rounds} rounds, in brackets the quartiles."
        " All gave the same bytes; zlib's CRC-32 is another checksum and there to compare with."
    )
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.codecs", description=__doc__)
    add = parser.add_argument
    shown = "(default: %(default)s)"
    add("--size", type=float, default=128, metavar="MB", help=f"values in each file {shown}")
    add("--part", type=float, default=32, metavar="MB", help=f"of these, how many {shown}")
    add("--record-size", type=int, default=1024, metavar="BYTES", help=f"of a value {shown}")
    add("--rounds", type=int, default=9, help=f"turns that each library takes {shown}")
    add("--cpu", type=int, metavar="N", help="the processor to run on (default: the last)")
    place = Path("build/benchmarks")
    add("--inputs", type=Path, default=place, metavar="DIR", help=f"where files are kept {shown}")
    origin = parser.add_mutually_exclusive_group()
    for name, value in (("--broker", BROKER), ("--generated", GENERATED)):
        text = f"files by {value} only"
        origin.add_argument(name, dest="origin", action="store_const", const=value, help=text)
    return parser.parse_args(arguments)


def _compare_libraries(item: Input, segment: Segment, rounds: int) -> Iterator[tuple[str, ...]]:
    stored = segment.data.data
    payloads = [bytes(stored[b.position + HEADER_BYTES : b.end]) for b in segment.batches]
    expected: list[bytes] = []
    contenders: list[Contender] = []
    missing: list[str] = []
    for library in LIBRARIES[item.codec]:
        module = find(library.module)
        if module is None:
            missing.append(library.name)
            continue
        decompress = library.make(module)
        found = [bytes(decompress(payload)) for payload in payloads]
        expected = expected or found
        if found != expected:
            raise DifferentWorkError(f"{item.label}: {library.name} gives other bytes")
        contenders.append(_decompressing(library.name, decompress, payloads, expected))
    yield from _measured(item.label, contenders, missing, rounds)


def _decompressing(
    name: str, decompress: Decompress, payloads: list[bytes], expected: list[bytes]
) -> Contender:
    size = sum(len(part) for part in expected)
    return Contender(name, lambda: sum(len(decompress(part)) for part in payloads), size)


def _compare_checksums(item: Input, segment: Segment, rounds: int) -> Iterator[tuple[str, ...]]:
    stored = segment.data.data
    bodies = [stored[batch.position + 21 : batch.end] for batch in segment.batches]
    contenders: list[Contender] = []
    missing: list[str] = []
    for name, (module_name, make) in CHECKSUMS.items():
        module = find(module_name)
        if module is None:
            missing.append(name)
            continue
        checksum = make(module)
        is_other = "CRC-32" in name
        if not is_other:
            for batch, body in zip(segment.batches, bodies, strict=True):
                if checksum(body) != batch.crc:
                    raise DifferentWorkError(f"{name} gives another checksum")
        contenders.append(_checking(name, checksum, bodies))
    yield from _measured("checksum", contenders, missing, rounds)


def _checking(name: str, checksum: Checksum, bodies: list[memoryview]) -> Contender:
    def run() -> int:
        for body in bodies:
            checksum(body)
        return sum(len(body) for body in bodies)

    return Contender(name, run, sum(len(body) for body in bodies))


def _measured(
    label: str, contenders: list[Contender], missing: list[str], rounds: int
) -> Iterator[tuple[str, ...]]:
    measure(contenders, rounds)
    for contender in contenders:
        rate = contender.expected / contender.median_seconds / 1e6
        yield (label, contender.name, f"{rate:,.0f}", str(ratio(contender, contenders[0])))
    for name in missing:
        yield (label, name, "not installed", "")


if __name__ == "__main__":
    sys.exit(main())
