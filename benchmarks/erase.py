"""Searching and writing a log directory without a person's records: `python -m benchmarks.erase`.

Measures `kafkalog erase` beside `kafkalog check`, which reads the same bytes, and beside `cp`,
which writes them, in the same run and on the same files: the seconds that pass, and processor
seconds, which other programs on the machine change little. kafkalog has one process, as `cp` has,
unless --processes gives more. `cp` is followed by `sync` of what it wrote, for `erase` flushes its
files too. Files are in the system's cache by then.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring.processes import command_run
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.unreadable import UnreadableRanges
from kafkalog.storage.recovery.producer_state import ProducerState
from kafkalog.storage.recovery.side_files import rebuild_side_files
from kafkalog.wire.compression import CompressionType
from tests.support.logs.plain_reader import BytesInMemory

_MEBIBYTE = 1024 * 1024
_SEGMENTS, _RECORDS = 4, 100
# One batch in so many has one record of the person.
_BATCHES_PER_HIT = 100
_PERSON = "cust-17"
_COLUMNS = (
    *("codec", "deed", "seconds", "processor seconds"),
    *("s, times check", "processor s, times check", "s, times cp"),
)
_Taken = tuple[float, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    before = load()
    rows = []
    for codec in options.codecs:
        progress(f"{_SEGMENTS} segments of {options.size} MiB, {codec}")
        log_dir = _log_dir(options.inputs / f"erase-{codec}-{options.size}", codec, options.size)
        rows += _rows(log_dir, codec, options)
    print(f"{machine(('kafkalog', 'numpy', 'pyarrow'))}; {before} before, {load()} after")
    print(f"\n{table(_COLUMNS, rows)}\n")
    print(
        f"The least of {options.rounds} rounds. Batches of {_RECORDS} records of about 250 bytes; "
        f"one batch in {_BATCHES_PER_HIT} has a record of the person. Writing is the run with --to "
        "and --proof less the search of the same run, which --check measures."
    )
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.erase", description=__doc__)
    parser.add_argument("--size", type=int, default=64, help="MiB of a segment (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument(
        "--codecs",
        type=lambda text: text.split(","),
        default=["none", "zstd"],
        metavar="LIST",
        help="(default: none,zstd)",
    )
    inputs_argument(parser)
    return parser.parse_args(arguments)


def _rows(log_dir: Path, codec: str, options: argparse.Namespace) -> list[tuple[str, ...]]:
    scratch, program = options.inputs, (sys.executable, "-m", "kafkalog")

    def kafkalog(*deed: object) -> _Taken:
        return _least(options.rounds, (*program, *deed, "--processes", options.processes))

    person = scratch / "erase-person.txt"
    searches = {
        "search by key": _PERSON,
        "search by header": f'{{"header": "user", "value": "{_PERSON}"}}',
        "search by text": f'{{"text": "{_PERSON}"}}',
        "search by path": f'{{"value-path": "$.customer.id", "value": "{_PERSON}"}}',
    }
    copy = scratch / "erase-copy"
    words = f"cp -r --reflink=never {log_dir} {copy} && sync {copy}/*/*"
    check, copied = kafkalog("check", log_dir), _least(options.rounds, ("sh", "-c", words))
    found = [("check", check), ("cp", copied)]
    for name, line in searches.items():
        person.write_text(f"{line}\n")
        found.append((name, kafkalog("erase", log_dir, "--identifiers", person, "--check")))
    person.write_text(f"{_PERSON}\n")
    target = ["--to", copy, "--proof", scratch / "erase-proof.json"]
    searched = dict(found)["search by key"]
    for name, given in {"write with a proof": target, "write without": target[:2]}.items():
        whole = kafkalog("erase", log_dir, "--identifiers", person, *given)
        found.append((name, (whole[0] - searched[0], whole[1] - searched[1])))
    return [
        (
            *(codec, name, f"{taken[0]:.2f}", f"{taken[1]:.2f}"),
            *(f"{taken[0] / check[0]:.2f}", f"{taken[1] / check[1]:.2f}"),
            f"{taken[0] / copied[0]:.2f}",
        )
        for name, taken in found
    ]


def _least(rounds: int, command: Sequence[object]) -> _Taken:
    """Return the seconds and the processor seconds of a command, its start included."""
    taken = [_taken([*map(str, command)]) for _ in range(rounds)]
    return min(each[0] for each in taken), min(each[1] for each in taken)


def _taken(command: Sequence[str]) -> _Taken:
    taken = command_run(command)
    for place in [*command, *command[-1].split()]:
        if place.endswith("/erase-copy"):
            shutil.rmtree(place, ignore_errors=True)
    return taken.seconds, taken.busy_seconds


def _log_dir(directory: Path, codec: str, size: int) -> Path:
    """Return a log directory with one partition, made if it is not there."""
    if directory.exists():
        return directory
    partition = directory / "orders-0"
    partition.mkdir(parents=True)
    offset = 0
    for _ in range(_SEGMENTS):
        offset = _segment(partition, offset, codec, size * _MEBIBYTE)
    return directory


def _segment(partition: Path, first: int, codec: str, size: int) -> int:
    data, offset = bytearray(), first
    while len(data) < size:
        data += _batch(offset, CompressionType[codec.upper()])
        offset += _RECORDS
    name = f"{first:020d}"
    (partition / f"{name}.log").write_bytes(data)
    made = rebuild_side_files(
        BytesInMemory(bytes(data), UnreadableRanges()), first, ProducerState(), []
    )
    (partition / f"{name}.index").write_bytes(made.index)
    (partition / f"{name}.timeindex").write_bytes(made.timeindex)
    return offset


def _batch(first: int, codec: CompressionType) -> bytes:
    records = [_record(offset) for offset in range(first, first + _RECORDS)]
    return write_batch(records, BatchFields(compression=codec))


def _record(offset: int) -> Record:
    # The person's are in the middle of their batches.
    place = offset % (_RECORDS * _BATCHES_PER_HIT)
    customer = _PERSON if place == _RECORDS // 2 else f"c-{offset % 9973}"
    value = (
        f'{{"order": {offset}, "customer": {{"id": "{customer}", "name": "Customer {offset}"}}, '
        f'"amount": {offset % 997}.5, "street": "Street {offset * 7919 % 1000003}", '
        f'"note": "{offset * 104729 % 1000000007:x}"}}'
    )
    headers = (("user", customer.encode()), ("source", b"shop"))
    return Record(offset, 1_700_000_000_000 + offset, 0, customer.encode(), value.encode(), headers)


if __name__ == "__main__":
    sys.exit(main())
