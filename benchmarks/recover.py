"""`kafkalog recover` beside that of another checkout: `python -m benchmarks.recover --peer DIR`.

Two nodes without ZooKeeper that were killed: one with 1 GiB in a few partitions, so that all
batches after the recovery points are read, and one with 10,000 partitions of one batch, which its
metadata assigns to it. Both checkouts run with the same Python and packages, in turn. Processor
seconds are those of all processes of the command, with its start.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.inputs.linked_segments import write_segment
from benchmarks.measuring.processes import CommandRun, command_run
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.messages.record_writer import write_record_value

_MEBIBYTE = 1024 * 1024
_TIMESTAMP_MS = 1_700_000_000_000
_PARTITIONS_OF_TOPIC = 100
# Ids as Kafka has them: of the cluster, of the directory, and of a topic by its number.
_CLUSTER_ID, _DIRECTORY_ID = "a2Fma2Fsb2ctdGVzdHMtMg", "AAAAAAAAAAAAAAAAAAD-ZQ"
_METADATA = "__cluster_metadata"
_LEVEL = 20
_NAME = f"{0:020d}"
_COLUMNS = ("directory", "checkout", "s", "processor s", "processor s, times the other")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    before = load()
    checkouts = {"this": Path(__file__).parents[1], "other": options.peer.resolve()}
    rows = []
    for name, log_dir in _log_dirs(options.inputs, options.size, options.partitions).items():
        runs: dict[str, list[CommandRun]] = {each: [] for each in checkouts}
        # The first one compiles kernels, and brings the files into memory.
        for number in range(options.rounds + 1):
            for checkout, place in checkouts.items():
                found = command_run(_command(place, log_dir))
                if number:
                    runs[checkout].append(found)
                    progress(f"{name}, {checkout}: {found.busy_seconds:.2f} busy")
        rows += [(name, each, *_figures(runs[each], runs["other"])) for each in checkouts]
    print(f"{machine(('kafkalog', 'numpy', 'pyarrow'), 'all of them')}; {before}, {load()} after")
    print(f"\n{table(_COLUMNS, rows)}\n\nThe least of {options.rounds} rounds; ratios: medians.")
    return 0


def _figures(own: Sequence[CommandRun], other: Sequence[CommandRun]) -> tuple[str, ...]:
    pairs = zip(own, other, strict=True)
    ratios = [one.busy_seconds / two.busy_seconds for one, two in pairs]
    return (
        f"{min(each.seconds for each in own):.2f}",
        f"{min(each.busy_seconds for each in own):.2f}",
        f"{statistics.median(ratios):.2f}",
    )


def _command(checkout: Path, log_dir: Path) -> list[str]:
    given = ["-m", "kafkalog", "recover", str(log_dir), "--no-fail-on-findings"]
    return ["env", f"PYTHONPATH={checkout}", sys.executable, *given]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recover", description=__doc__)
    parser.add_argument("--peer", type=Path, required=True, help="the other checkout")
    parser.add_argument("--size", type=int, default=1024, help="MiB of segments (%(default)s)")
    parser.add_argument("--partitions", type=int, default=10_000, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    inputs_argument(parser)
    return parser.parse_args(arguments)


def _log_dirs(inputs: Path, size: int, partitions: int) -> dict[str, Path]:
    """Return the log directories by what they have, made if they are not there."""
    large, many = inputs / f"recover-{size}-mib", inputs / f"recover-{partitions}-partitions"
    if not (large / "meta.properties").exists():
        whole = inputs / f"recover-{size // 4}.log"
        write_segment(whole, "none", 1024, inputs, size // 4 * _MEBIBYTE)
        _write_node(large, 4, lambda path: path.hardlink_to(whole))
    if not (many / "meta.properties").exists():
        record = Record(0, _TIMESTAMP_MS, 0, b"key", b"value")
        batch = write_batch([record], BatchFields(leader_epoch=0))
        _write_node(many, partitions, lambda path: path.write_bytes(batch))
    return {f"{size} MiB": large, f"{partitions:,} partitions": many}


def _write_node(log_dir: Path, partitions: int, write_log: Callable[[Path], object]) -> None:
    for number in range(partitions):
        topic, partition = divmod(number, _PARTITIONS_OF_TOPIC)
        folder = log_dir / f"topic-{topic}-{partition}"
        folder.mkdir(parents=True, exist_ok=True)
        write_log(folder / f"{_NAME}.log")
        (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {_topic_id(topic)}\n")
    folder = log_dir / f"{_METADATA}-0"
    folder.mkdir()
    values = [*_metadata(partitions)]
    batches = []
    for first in range(0, len(values), 1000):
        records = [
            Record(first + i, _TIMESTAMP_MS, 0, None, value)
            for i, value in enumerate(values[first : first + 1000])
        ]
        batches.append(write_batch(records, BatchFields(leader_epoch=1)))
    (folder / f"{_NAME}.log").write_bytes(b"".join(batches))
    (log_dir / "meta.properties").write_text(
        f"version=1\ncluster.id={_CLUSTER_ID}\nnode.id=1\ndirectory.id={_DIRECTORY_ID}\n"
    )


def _metadata(partitions: int) -> Iterator[bytes]:
    """Yield the records of a cluster with one node."""

    def record(number: int, version: int, value: dict[str, object]) -> bytes:
        return write_record_value(_METADATA, number, version, value)

    yield record(12, 0, {"name": "metadata.version", "featureLevel": _LEVEL})
    broker = {"brokerId": 1, "brokerEpoch": 1, "logDirs": [_DIRECTORY_ID], "fenced": False}
    yield record(0, 3, broker)
    for number in range(partitions):
        topic, partition = divmod(number, _PARTITIONS_OF_TOPIC)
        if not partition:
            yield record(2, 0, {"name": f"topic-{topic}", "topicId": _topic_id(topic)})
        value = {
            "topicId": _topic_id(topic),
            "partitionId": partition,
            "replicas": [1],
            "isr": [1],
            "leader": 1,
            "directories": [_DIRECTORY_ID],
        }
        yield record(3, 1, value)


def _topic_id(topic: int) -> str:
    letters = "ABCDEFGHIJ"
    return "B" + "".join(letters[int(digit)] for digit in f"{topic:020d}") + "A"


if __name__ == "__main__":
    sys.exit(main())
