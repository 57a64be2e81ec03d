"""A real node started on log directories with damage: whether it stays, and what it did to them."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.broker.class_paths import class_path
from tests.support.broker.java_tools import SHORT_LIFE, end, server_command
from tests.support.broker.old_broker import OLD_LOGGING, OPEN
from tests.support.free_ports import free_ports

_START_SECONDS = 90
_LEADER_SECONDS = 20
# Retention, strays and checkpoints follow within seconds of the start.
_AFTER_START_SECONDS = 4
_STARTED = re.compile(r"Kafka Server started|started \(kafka\.server\.KafkaServer\)")
_OFFLINE = re.compile(
    r"(?:Stopping serving (?:logs|replicas) in dir|Failed to create or validate data directory) "
    r"(\S+)"
)
_ASIDE = re.compile(r"(?P<name>.+-[0-9]+)\.[0-9a-f]{32}-(?:stray|delete)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether the process ran to the end of the wait; the names of the directories that went
    offline, of the partitions that were set aside, the segments that are left by partition, the
    partitions without a leader, and where the others begin and end."""

    started: bool
    offline: set[str]
    set_aside: set[str]
    segments: dict[str, list[int]]
    leaderless: set[str]
    bounds: dict[str, tuple[int, int]]
    log: str


def started_node(
    folder: Path,
    uid: int | None = None,
    jars: Sequence[Path] = (),
    *,
    kafka: str | None = None,
    zookeeper_port: int | None = None,
) -> Outcome:
    """Start Kafka on the folder's server.properties, d1 and d2, with more `jars` on its class path,
    and end it again: 4.4, or another by its class path; one with ZooKeeper finds that at a port."""
    before = {path.name for path in folder.glob("d?/*") if _ASIDE.fullmatch(path.name)}
    text = (folder / "server.properties").read_text()
    client, controller = free_ports(2)
    text = text.replace(":29492", f":{client}")
    text = text.replace(":29493", f":{zookeeper_port or controller}")
    settings = folder / "started.properties"
    settings.write_text(text.replace("localhost", "127.0.0.1"))
    old_logging = folder / "log4j.properties"
    old_logging.write_text(OLD_LOGGING)
    log_file = folder / "server.log"
    places = ":".join((kafka or class_path("broker"), *map(str, jars)))
    options = ("-Xmx400m", *SHORT_LIFE, *OPEN, f"-Dlog4j.configuration=file:{old_logging}")
    logging = folder / "log4j2.properties"
    command = server_command(places, logging, "kafka.Kafka", settings, java_options=options)
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=uid
        )
        try:
            started = _stays(process, log_file)
            leaders = _leaders(f"127.0.0.1:{client}") if started else {}
            led = {name for name, leader in leaders.items() if leader >= 0}
            bounds = served_bounds(f"127.0.0.1:{client}", led)
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
    return Outcome(started, offline, aside, segments, {*leaders} - led, bounds, said)


def _stays(process: subprocess.Popen[bytes], log_file: Path) -> bool:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if _STARTED.search(log_file.read_text(errors="replace")):
            time.sleep(_AFTER_START_SECONDS)
            break
        time.sleep(0.1)
    return process.poll() is None


def _leaders(address: str) -> dict[str, int]:
    """Return the leader of each partition that the broker knows, -1 for none."""
    topics = AdminClient({"bootstrap.servers": address}).list_topics(timeout=10).topics
    return {
        f"{name}-{number}": partition.leader
        for name, topic in topics.items()
        for number, partition in topic.partitions.items()
    }


def served_bounds(address: str, names: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return where partitions begin and end, once the broker serves them; those that it does not
    serve are missing."""
    settings = {"bootstrap.servers": address, "group.id": "bounds"}
    # The end of a log, not of what open transactions leave to be read.
    consumer = Consumer({**settings, "isolation.level": "read_uncommitted"})
    deadline = time.monotonic() + _LEADER_SECONDS
    found: dict[str, tuple[int, int]] = {}
    try:
        for name in names:
            topic, _, number = name.rpartition("-")
            while name not in found:
                try:
                    place = TopicPartition(topic, int(number))
                    first, last = consumer.get_watermark_offsets(place, timeout=10)
                    found[name] = (int(first), int(last))
                except KafkaException:
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.5)
        return found
    finally:
        consumer.close()
