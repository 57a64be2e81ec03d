"""`kafkalog serve` beside the broker that wrote the files, read by Kafka's own consumer benchmark.

    python -m benchmarks.serve [--records N] [--rounds N] [--codecs none,zstd] [--consumers 1,4]

The broker runs all the time, and `kafkalog serve` serves its log directory: both are read in turn,
by kafka-consumer-perf-test in processes of their own. The rate is what all consumers together
receive, each by its own clock and after it has joined its group. Processor time, the part of it
in the kernel, which copies the bytes to the sockets, and the largest memory are the server's;
consumers take far more, and limit the rate on a machine with few cores.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.measuring.report import load, machine, progress, table
from benchmarks.measuring.served import served
from tests.support.broker.class_paths import class_path
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.producer_perf import produce

_PARTITIONS = 4
_RECORD_BYTES = 1000
_READ_SECONDS = 300
# The consumer's rate without the time in which it joined, in the tool's row of numbers.
_RATE_COLUMN = 8
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


class Run(NamedTuple):
    """What one run needed."""

    megabytes_per_second: float
    processor_seconds: float
    kernel_seconds: float


class Peer(NamedTuple):
    """A server: its name, its address and its process."""

    name: str
    address: str
    pid: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        rows = list(_rows(Path(directory), options))
    print(f"{machine(('pyarrow', 'numba'), 'all')}; {load()}\n")
    header = (
        "topic",
        "consumers",
        "server",
        "MB/s",
        "processor s",
        "of it in the kernel",
        "peak MiB",
    )
    print(table(header, rows, left=3))
    return 0


def _rows(directory: Path, options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    with KafkaServer(directory / "broker", java_options=()) as broker:
        for codec in options.codecs.split(","):
            progress(f"{options.records:,} records, {codec}")
            broker.create_topic(f"perf-{codec}", _PARTITIONS)
            produce(broker, f"perf-{codec}", _RECORD_BYTES, options.records, codec)
        with served(broker.log_dir, directory / "ready") as ours:
            peers = [Peer("broker", broker.bootstrap, broker.pid), Peer("kafkalog", *ours)]
            for codec in options.codecs.split(","):
                for consumers in map(int, options.consumers.split(",")):
                    yield from _measured(peers, f"perf-{codec}", consumers, options)


def _measured(
    peers: Sequence[Peer], topic: str, consumers: int, options: argparse.Namespace
) -> Iterator[tuple[str, ...]]:
    runs: dict[Peer, list[Run]] = {peer: [] for peer in peers}
    # The first round warms up both.
    for number in range(options.rounds + 1):
        for peer in peers:
            progress(f"{topic}, {consumers} consumers, {peer.name}, round {number}")
            found = _run(peer, topic, consumers, options.records)
            if number:
                runs[peer].append(found)
    for peer, measured in runs.items():
        rate, *seconds = (median(values) for values in zip(*measured, strict=True))
        shown = (f"{each:.2f}" for each in seconds)
        yield topic, str(consumers), peer.name, f"{rate:,.0f}", *shown, str(_peak_mib(peer.pid))


def _run(peer: Peer, topic: str, consumers: int, records: int) -> Run:
    before = _processor_seconds(peer.pid)
    command = ["java", "-Xmx512m", "-cp", class_path("tools")]
    command += ["org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", peer.address]
    command += ["--topic", topic, "--num-records", str(records), "--timeout", "60000"]
    processes = [
        subprocess.Popen(
            [*command, "--group", f"{peer.name}-{time.time_ns()}-{number}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for number in range(consumers)
    ]
    rates = [_rate(each.communicate(timeout=_READ_SECONDS)[0], records) for each in processes]
    after = _processor_seconds(peer.pid)
    return Run(sum(rates), *(end - begin for begin, end in zip(before, after, strict=True)))


def _rate(printed: str, records: int) -> float:
    """Return the rate in what the tool printed, if all records came."""
    row = printed.splitlines()[-1].split(", ")
    if int(row[4]) < records:
        raise RuntimeError(f"{row[4]} of {records} records came:\n{printed}")
    return float(row[_RATE_COLUMN])


def _processor_seconds(pid: int) -> tuple[float, float]:
    """Return a process's time on a processor, and the part of it in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own, kernel = (int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:13])
    return own + kernel, kernel


def _peak_mib(pid: int) -> int:
    found = _PEAK.search(Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) // 1024 if found else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks.serve")
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codecs", default="none,zstd")
    parser.add_argument("--consumers", default="1,4")
    parser.add_argument("--directory", default=None, help="where the broker writes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
