"""Restoring a cluster from copies of its disks: `python -m benchmarks.restore`.

Measures `kafkalog restore` and `cp` of the bytes that it keeps; both flush to disk. The cluster is
set restore44 of tests/golden. One of its partitions is made large in all three copies. This is
`plain-0`, which restore takes from one copy. With --compacted it is `state-0`, which restore unites
from all three. With --partitions the disk of one node gets a topic of so many small partitions
instead, and is restored alone. All files are in the system's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.measuring.report import load, machine, progress, table
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.records import Record
from kafkalog.format.side_files.partition_metadata import write_topic_id
from kafkalog.format.side_files.producer_snapshot import write_producer_snapshot
from kafkalog.inspection.metadata.cluster_from_data import RebuiltRecord, record_bytes
from kafkalog.inspection.metadata.copies import metadata_copies
from kafkalog.inspection.metadata.new_directory import new_random_id
from kafkalog.storage.files.files import InputFile
from kafkalog.storage.partition_log import LEADER_EPOCHS, PARTITION_METADATA
from kafkalog.storage.recovery.side_files import rebuild_side_files

_ARCHIVE = Path(__file__).parents[1] / "tests/golden/data/restore44.logs.tar.xz"
_AS_OF = "2026-11-25T19:48:40Z"
# Before the moment, and after the start of the cluster.
_RECORD_MS = 1_795_636_100_000
_MEBIBYTE = 1024 * 1024
_SEGMENT_BYTES = 128 * _MEBIBYTE
_BATCH_ROWS = 500
_CHUNK_BYTES = 4 * _MEBIBYTE
# A process begins with the memory of the one that starts it, which the kernel counts: this one has
# loaded pyarrow.
_LAUNCHER = """
import json, os, sys
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(process, 0)
processor = usage.ru_utime + usage.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), processor, usage.ru_maxrss / 1024]))
"""
_COLUMNS = ("", "wall: s", "processor: s", "most memory of a process: MiB")


class _Run(NamedTuple):
    wall: float
    processor: float
    memory: float

    def row(self, name: str) -> tuple[str, ...]:
        return name, f"{self.wall:.1f}", f"{self.processor:.1f}", f"{self.memory:.0f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    before = load()
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        place = Path(scratch)
        progress("writing three copies")
        copies = _copies(place, options)
        moment = ["--as-of", _AS_OF]
        if options.partitions:
            copies, moment = copies[-1:], []
            _add_partitions(copies[0], options.partitions)
        best: dict[str, _Run] = {}
        for number in range(options.rounds):
            progress(f"round {number + 1}")
            restored, copied = place / "restored", place / "copied"
            command = [sys.executable, "-m", "kafkalog", "restore", *map(str, copies)]
            command += [*moment, "--to", str(restored), *options.more]
            _keep_best(best, "kafkalog restore", _measured(command, (0, 1)))
            words = f"cp -r {restored} {copied} && sync"
            _keep_best(best, "cp of its result", _measured(["sh", "-c", words], (0,)))
            shutil.rmtree(restored)
            shutil.rmtree(copied)
    print(f"{machine(('kafkalog', 'numpy'))}; {before} before, {load()} after")
    print(f"\n{table(_COLUMNS, [run.row(name) for name, run in best.items()], left=1)}\n")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore", description=__doc__)
    parser.add_argument("--size", type=int, default=1024, metavar="MIB", help="of the partition")
    parser.add_argument("--value-bytes", type=int, default=1000, help="of a record")
    parser.add_argument("--records", type=int, default=16, help="in a batch")
    parser.add_argument("--compacted", action="store_true", help="unite the copies")
    parser.add_argument("--partitions", type=int, default=0, metavar="N", help="small ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", metavar="DIR", help="where to write")
    parser.add_argument("more", nargs="*", help="more options of kafkalog restore, after --")
    return parser.parse_args(arguments)


def _copies(place: Path, options: argparse.Namespace) -> list[Path]:
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(place, filter="data")
    copies = sorted((place / "snapshots").glob("*/data"))
    if options.partitions:
        return copies
    name = "state-0" if options.compacted else "plain-0"
    for copy in copies:
        directory = copy / name
        for found in [*directory.glob("*.log*"), *directory.glob("*index*")]:
            found.unlink()
        (directory / LEADER_EPOCHS).write_text("0\n1\n0 0\n")
        for snapshot in directory.glob("*.snapshot"):
            snapshot.unlink()
        for checkpoint in copy.glob("log-start-offset-checkpoint"):
            _set_to_zero(checkpoint, name)
        if options.compacted:
            _set_to_zero(copy / "cleaner-offset-checkpoint", name)
        _write_segments(directory, options)
    return copies


def _add_partitions(log_dir: Path, partitions: int) -> None:
    """Add a topic to the end of the metadata, and its partitions of some records each."""
    (copy,) = metadata_copies([str(log_dir)])
    topic_id = new_random_id()
    rows = [RebuiltRecord("TopicRecord", "", 0, {"name": "many", "topicId": topic_id})]
    nodes = [copy.node_id]
    for number in range(partitions):
        values = {
            "partitionId": number,
            "topicId": topic_id,
            "replicas": nodes,
            "isr": nodes,
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": copy.node_id,
            "leaderEpoch": 0,
            "partitionEpoch": 0,
            "directories": [copy.directory_id],
        }
        rows.append(RebuiltRecord("PartitionRecord", "", 1, values))
    offset, time_ms = copy.walk.end_offset, copy.walk.last_ms + 1
    with max((log_dir / "__cluster_metadata-0").glob("*.log")).open("ab") as file:
        for first in range(0, len(rows), _BATCH_ROWS):
            part = [
                Record(offset + first + place, time_ms, 0, None, record_bytes(row))
                for place, row in enumerate(rows[first : first + _BATCH_ROWS])
            ]
            file.write(write_batch(part, BatchFields(leader_epoch=copy.position[0])))
    few = [Record(place, time_ms - 1, 0, None, bytes(300)) for place in range(20)]
    batch = write_batch(few, BatchFields(leader_epoch=0))
    for number in range(partitions):
        directory = log_dir / f"many-{number}"
        directory.mkdir()
        (directory / f"{0:020d}.log").write_bytes(batch)
        (directory / LEADER_EPOCHS).write_text("0\n1\n0 0\n")
        (directory / PARTITION_METADATA).write_text(write_topic_id(topic_id))


def _set_to_zero(checkpoint: Path, name: str) -> None:
    """Have a checkpoint say 0 of a partition, if it names it."""
    topic, partition = name.rsplit("-", 1)
    lines = [
        f"{topic} {partition} 0" if line.startswith(f"{topic} {partition} ") else line
        for line in checkpoint.read_text().splitlines()
    ]
    checkpoint.write_text("".join(f"{line}\n" for line in lines))


def _write_segments(directory: Path, options: argparse.Namespace) -> None:
    """Write segments with their indexes. All batches are the same: no checksum covers their
    offsets."""
    key = b"k" if options.compacted else None
    value = os.urandom(options.value_bytes)
    records = [Record(i, _RECORD_MS, 0, key, value) for i in range(options.records)]
    batch = write_batch(records, BatchFields(leader_epoch=0))
    left, offset = options.size * _MEBIBYTE // len(batch), 0
    while left:
        path = directory / f"{offset:020d}.log"
        base, in_segment = offset, min(left, _SEGMENT_BYTES // len(batch))
        left -= in_segment
        with path.open("wb") as file:
            while in_segment:
                count = min(in_segment, max(_CHUNK_BYTES // len(batch), 1))
                rows = np.frombuffer(batch * count, dtype=np.uint8).copy().reshape(count, -1)
                firsts = offset + options.records * np.arange(count)
                rows[:, :8] = firsts.astype(">i8").view(np.uint8).reshape(-1, 8)
                file.write(rows.tobytes())
                offset += count * options.records
                in_segment -= count
        with InputFile(str(path)) as source:
            files = rebuild_side_files(source, base)
        path.with_suffix(".index").write_bytes(files.index)
        path.with_suffix(".timeindex").write_bytes(files.timeindex)
        path.with_suffix(".snapshot").write_bytes(write_producer_snapshot([]))


def _measured(command: Sequence[str], expected: Sequence[int]) -> _Run:
    started = time.perf_counter()
    given = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command]
    said = subprocess.run(given, stdout=subprocess.PIPE, check=True).stdout
    wall = time.perf_counter() - started
    exit_code, processor, memory = json.loads(said)
    if exit_code not in expected:
        raise RuntimeError(f"{' '.join(command)} failed")
    return _Run(wall, processor, memory)


def _keep_best(best: dict[str, _Run], name: str, run: _Run) -> None:
    if name not in best or run.wall < best[name].wall:
        best[name] = run


if __name__ == "__main__":
    sys.exit(main())
