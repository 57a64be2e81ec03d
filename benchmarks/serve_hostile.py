"""How long other clients of `kafkalog serve` wait while one client is hostile, and what that takes.

    python -m benchmarks.serve_hostile [--root PATH] [--seconds N]

Each case has a server of its own over a topic of 200 MiB. A client sends what the case says, and
another one asks for a topic's metadata again and again, until all connections of the first have an
answer or are closed, or for so many seconds. The delay is the longest of its answers; memory is the
largest resident one. `--root` is the checkout of kafkalog to measure, by default this one.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measuring.report import load, machine, progress, table
from benchmarks.measuring.served import served
from kafkalog.testing import LogDirectory
from tests.support.serve.raw_client import request_bytes

_MIB = 1024 * 1024
_BETWEEN_SECONDS = 0.02
_LARGEST = 4 * _MIB
_TOPIC = "orders"
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")


class Case(NamedTuple):
    """What one client sends, on so many connections."""

    name: str
    data: bytes
    connections: int = 1


def cases() -> Iterator[Case]:
    """Yield what hostile and careless clients send, each request of 4 MiB at most."""
    announced = struct.pack(">i", _LARGEST) + b"\0"
    yield Case("17 connections that announce 4 MiB and send a byte", announced, 17)
    names: list[Any] = [{"name": ""}] * (_LARGEST // 2 - 100)
    yield Case("Metadata of 2 million empty names", _request("Metadata", 8, {"topics": names}))
    topics: list[Any] = [{"topic": "", "partitions": []}] * (_LARGEST // 3 - 100)
    waits = {"maxWaitMs": 0, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0}
    yield Case("Fetch of 1.4 million topics", _request("Fetch", 12, {**waits, "topics": topics}))
    found = _offsets([0] * 20_000)
    yield Case("ListOffsets of a partition 20,000 times", _request("ListOffsets", 1, found))
    names = [{"name": f"{number:06}" * 5} for number in range(80_000)]
    data = _request("Metadata", 8, {"topics": names})
    yield Case("Metadata of 80,000 other names, 17 times", data, 17)
    found = _offsets(range(100))
    yield Case("ListOffsets of 100 partitions, 17 times", _request("ListOffsets", 1, found), 17)


def _offsets(partitions: Sequence[int]) -> Mapping[str, Any]:
    asked = [{"partitionIndex": each, "timestamp": 1_900_000_000_000} for each in partitions]
    return {"replicaId": -1, "topics": [{"name": _TOPIC, "partitions": asked}]}


def _request(name: str, version: int, values: Mapping[str, Any]) -> bytes:
    return request_bytes(name, version, dict(values), 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as directory:
        log_dir = _written(Path(directory) / "data")
        rows = [_row(case, log_dir, Path(directory) / "ready", options) for case in cases()]
    print(f"{machine(('pyarrow', 'numba'), 'all')}; {load()}\n")
    print(table(("case", "longest delay, s", "answers", "peak MiB"), rows, left=1))
    return 0


def _written(path: Path) -> Path:
    directory = LogDirectory(path)
    topic = directory.topic(_TOPIC, partitions=100)
    value = os.urandom(_MIB)
    for partition in range(100):
        for _ in range(2):
            topic.records([(None, value)], partition=partition)
    return Path(directory.write())


def _row(case: Case, log_dir: Path, ready: Path, options: argparse.Namespace) -> Sequence[str]:
    progress(case.name)
    with served(log_dir, ready, options.root) as (address, pid):
        host, _, port = address.rpartition(":")
        delays = _delays(case, (host, int(port)), options.seconds)
        found = _PEAK.search(Path(f"/proc/{pid}/status").read_text())
    peak = int(found[1]) // 1024 if found else 0
    return case.name, f"{max(delays):.2f}", str(len(delays)), str(peak)


def _delays(case: Case, address: tuple[str, int], seconds: float) -> list[float]:
    """Return how long each answer to the other client took while the case went on."""
    ask = _request("Metadata", 8, {"topics": [{"name": _TOPIC}]})
    with ExitStack() as open_until_end:
        other = open_until_end.enter_context(socket.create_connection(address, 600))
        _asked(other, ask)
        hostile = [
            open_until_end.enter_context(socket.create_connection(address, seconds))
            for _ in range(case.connections)
        ]
        threads = [
            threading.Thread(target=_send, args=(each, case.data), daemon=True) for each in hostile
        ]
        for each in threads:
            each.start()
        time.sleep(0.1)
        delays, end = [], time.monotonic() + seconds
        while True:
            is_last = time.monotonic() > end or not any(each.is_alive() for each in threads)
            started = time.monotonic()
            _asked(other, ask)
            delays.append(time.monotonic() - started)
            if is_last:
                return delays
            time.sleep(_BETWEEN_SECONDS)


def _send(connection: socket.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
        connection.recv(1)
    except OSError:
        pass  # disconnected, or the end of the measurement


def _asked(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)
    size = struct.unpack(">i", _exactly(connection, 4))[0]
    _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise RuntimeError("the server has disconnected the other client")
        data += more
    return data


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks.serve_hostile")
    parser.add_argument("--root", default=str(Path(__file__).parents[1]), help="a checkout")
    parser.add_argument("--seconds", type=float, default=60)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
