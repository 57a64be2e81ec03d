"""Planning reads of millions of segments: `python -m benchmarks.listed_planning`.

Measures what the planning process of Spark's driver does before the first task, on log directories
in an object store that only lists: it has no segments, and makes up their names. The store's own
share of the time is measured first.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, TypeVar
from unittest import mock

from pyarrow import fs
from pyspark.serializers import CloudPickleSerializer

from benchmarks.inputs.listed_store import BUCKET, ListedStore, Requests
from benchmarks.measuring.report import load, machine, progress, table
from kafkalog.spark.source.batch_reader import ReadGroup
from kafkalog.storage.files import remote_files
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.views.options.options import read_options
from kafkalog.views.planning.planning import planned_groups

_Result = TypeVar("_Result")
_GIB = 1024**3
_MIB = 1024**2


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the report."""
    options = _options(arguments)
    store = ListedStore(
        max(options.segments // (options.of_each * options.partitions), 1),
        options.partitions,
        options.of_each,
        _GIB,
    )
    before = load()
    measured = _Measured()
    with mock.patch.object(remote_files, "file_system", store.opened):
        measured.step("the store alone", lambda: _floor(store))
        store.requests, store.latency_s = Requests(), options.latency_ms / 1000
        logs = measured.step("listing, checkpoints", lambda: find_partitions([store.uri]))
        asked = store.requests
        # Of fewer than 100,000 segments larger ones would be looked into: the store has none.
        parsed = read_options({"path": store.uri, "maxPartitionBytes": str(_GIB)})
        groups = measured.step("plan", lambda: planned_groups(parsed, logs))
    serializer: Any = CloudPickleSerializer()
    sizes = measured.step(
        "pickling", lambda: [len(serializer.dumps(ReadGroup(group))) for group in groups]
    )
    segments = sum(len(log.segments) for log in logs)
    print(f"{machine(('pyarrow', 'pyspark'))}; {before} before, {load()} after")
    print(
        f"\n{segments:,} segments of 1 GiB in {len(logs):,} partitions of {store.brokers:,} log "
        f"directories, {options.latency_ms} ms for a listing: {asked.listings:,} listings of "
        f"{asked.listed:,} objects, {len(asked.opened):,} small files "
        f"opened; {len(groups):,} tasks, {sum(sizes) / _MIB:.0f} MiB pickled, the largest "
        f"{max(sizes):,} bytes\n"
    )
    columns = ("step", "seconds", "processor seconds", "peak so far, MiB")
    print(table(columns, measured.rows, left=1))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.listed_planning")
    parser.add_argument(
        "--segments", type=int, default=1_000_000, help="of all partitions (default: %(default)s)"
    )
    parser.add_argument(
        "--of-each", type=int, default=50, help="segments of a partition (default: %(default)s)"
    )
    parser.add_argument(
        "--partitions", type=int, default=1000, help="of a log directory (default: %(default)s)"
    )
    parser.add_argument(
        "--latency-ms", type=int, default=0, help="of each listing (default: %(default)s)"
    )
    return parser.parse_args(arguments)


class _Measured:
    """Seconds, processor seconds and memory of one step after the other."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, str]] = []

    def step(self, name: str, work: Callable[[], _Result]) -> _Result:
        progress(name)
        begun, used = time.perf_counter(), time.process_time()
        result = work()
        seconds, processor = time.perf_counter() - begun, time.process_time() - used
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        self.rows.append((name, f"{seconds:.1f}", f"{processor:.1f}", f"{peak:,}"))
        return result


def _floor(store: ListedStore) -> None:
    """List all that there is, one log directory after the other, and keep nothing."""
    system = fs.PyFileSystem(store)
    top = system.get_file_info(fs.FileSelector(BUCKET))
    for _ in chain.from_iterable(
        system.get_file_info(fs.FileSelector(entry.path, recursive=True)) for entry in top
    ):
        pass


if __name__ == "__main__":
    raise SystemExit(main())
