"""A real node started on log directories with damage: whether it stays, and what it did to them."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import end, server_command
from tests.support.free_ports import free_ports

_START_SECONDS = 90
# Retention, strays and checkpoints follow within seconds of the start.
_AFTER_START_SECONDS = 4
_STARTED = "Kafka Server started"
_OFFLINE = re.compile(
    r"(?:Stopping serving (?:logs|replicas) in dir|Failed to create or validate data directory) "
    r"(\S+)"
)
_ASIDE = re.compile(r"(?P<name>.+-[0-9]+)\.[0-9a-f]{32}-(?:stray|delete)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether the process ran to the end of the wait; the names of the directories that went
    offline, of the partitions that were set aside, the segments that are left by partition, and
    the partitions without a leader."""

    started: bool
    offline: set[str]
    set_aside: set[str]
    segments: dict[str, list[int]]
    leaderless: set[str]
    log: str


def started_node(folder: Path, uid: int | None = None, jars: Sequence[Path] = ()) -> Outcome:
    """Start Kafka 4.4 on the folder's server.properties, d1 and d2, with more `jars` on its class
    path, and end it again."""
    before = {path.name for path in folder.glob("d?/*") if _ASIDE.fullmatch(path.name)}
    text = (folder / "server.properties").read_text()
    client, controller = free_ports(2)
    text = text.replace(":29492", f":{client}").replace(":29493", f":{controller}")
    settings = folder / "started.properties"
    settings.write_text(text.replace("localhost", "127.0.0.1"))
    log_file = folder / "server.log"
    places = ":".join((class_path("broker"), *map(str, jars)))
    command = server_command(places, folder / "log4j2.properties", "kafka.Kafka", settings)
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=uid
        )
        try:
            started = _stays(process, log_file)
            leaderless = _leaderless(f"127.0.0.1:{client}") if started else set()
        finally:
            end(process)
    said = log_file.read_text(errors="replace")
    names = {path.name for path in folder.glob("d?/*")} - before
    aside = {match["name"] for name in names if (match := _ASIDE.fullmatch(name))}
    segments = {
        path.name: sorted(int(log.name[:20]) for log in path.glob("*.log"))
        for path in folder.glob("d?/*-?")
    }
    offline = {Path(name).name for name in _OFFLINE.findall(said)}
    return Outcome(started, offline, aside, segments, leaderless, said)


def _stays(process: subprocess.Popen[bytes], log_file: Path) -> bool:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if _STARTED in log_file.read_text(errors="replace"):
            time.sleep(_AFTER_START_SECONDS)
            break
        time.sleep(0.1)
    return process.poll() is None


def _leaderless(address: str) -> set[str]:
    """Return the partitions of which the broker tells its clients that none leads them."""
    topics = AdminClient({"bootstrap.servers": address}).list_topics(timeout=10).topics
    return {
        f"{name}-{number}"
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
        if partition.leader < 0
    }
