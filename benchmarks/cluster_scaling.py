"""Jobs on Spark's standalone cluster on loopback with 1, 2 and 4 executors of one core each:
`python -m benchmarks.cluster_scaling`.

Each job writes Delta tables from a driver of its own, which is not one of the executors. Files are
read once before, so that they are in memory. More executors than processors share these: then the
processor seconds say what a cluster's machines would do, and the elapsed ones do not. Those of
executors include the start of each. Linux only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from benchmarks.jobs import RECORDS, records_input
from benchmarks.measuring.processes import Measured, given_jars, measured_process, own_seconds
from benchmarks.measuring.report import inputs_argument, load, machine, progress, table
from tests.support.free_ports import free_ports
from tests.support.standalone_cluster import HOST, StandaloneCluster, descendants

_JOBS = ("validate_checksums", "ingest_topics")
_COLUMNS = (
    *("job", "executors", "s", "MB/s", "times as fast"),
    *("executors, processor s", "driver, processor s", "executors, processor s a GB"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    options = _options(arguments)
    logs = records_input(options.inputs / RECORDS, options.records, options.records // 20)
    size = sum(path.stat().st_size for path in logs.rglob("*.log"))
    before, rows = load(), []
    for job in options.jobs:
        first: Measured | None = None
        for executors in options.executors:
            progress(f"{job} with {executors}")
            taken, busy = _measured(job, logs, executors, options.memory)
            first = first or taken
            rows.append(
                (
                    *(job.replace("_", "-"), str(executors), f"{taken.seconds:.1f}"),
                    f"{size / 1e6 / taken.seconds:,.0f}",
                    f"{first.seconds / taken.seconds:.2f}",
                    *(f"{busy:.1f}", f"{taken.busy_seconds:.1f}", f"{busy / size * 1e9:.1f}"),
                )
            )
    print(f"{machine(('pyspark',), 'all of them')}; {before} before, {load()} after")
    print(f"\n{options.records:,} records, {size / 1e6:,.0f} MB\n\n{table(_COLUMNS, rows)}")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster_scaling")
    parser.add_argument(
        "--records", type=int, default=20_000_000, metavar="N", help="(default: %(default)s)"
    )
    parser.add_argument(
        "--executors", type=int, nargs="+", default=[1, 2, 4], help="(default: 1 2 4)"
    )
    parser.add_argument("--jobs", nargs="+", choices=_JOBS, default=_JOBS, help="(default: both)")
    parser.add_argument("--memory", default="900m", help="of an executor (default: %(default)s)")
    inputs_argument(parser, Path(tempfile.gettempdir()) / "kafkalog-jobs")
    return parser.parse_args(arguments)


def _measured(job: str, logs: Path, executors: int, memory: str) -> tuple[Measured, float]:
    """One job in a cluster of its own, and the processor seconds of the executors."""
    command = [sys.executable, "-m", "benchmarks.jobs", "--part", job, "--logs", str(logs)]
    with tempfile.TemporaryDirectory() as place:
        ports = free_ports(2)
        with StandaloneCluster(Path(place), None, ports, executors) as cluster:
            jars = given_jars()
            submit = (
                f"--master {cluster.url} {f'--jars {jars} ' if jars else ''}"
                f"--conf spark.executor.memory={memory} --conf spark.ui.enabled=false "
                f"--conf spark.driver.bindAddress={HOST} --conf spark.driver.host={HOST} "
                "pyspark-shell"
            )
            with _ProcessorSeconds(cluster) as used:
                taken = measured_process(command, submit)
            return taken, used.seconds


class _ProcessorSeconds:
    """A context manager: what the processes of executors keep processors busy, looked at so often
    that little of a process that ends is missed."""

    def __init__(self, cluster: StandaloneCluster) -> None:
        self._cluster = cluster
        self._of_process: dict[int, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    @property
    def seconds(self) -> float:
        return sum(self._of_process.values())

    def __enter__(self) -> _ProcessorSeconds:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.2):
            for executor in self._cluster.executors():
                for pid in (executor, *descendants(executor)):
                    seconds = own_seconds(pid)
                    self._of_process[pid] = max(self._of_process.get(pid, 0), seconds)


if __name__ == "__main__":
    raise SystemExit(main())
