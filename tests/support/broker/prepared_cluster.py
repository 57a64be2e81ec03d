"""A cluster with a topic whose partitions are to be filled with logs of other origin.

It is started once to create the topic; tests work on copies of its directory. Any log can stand in
for a partition then: by the topic's id in `partition.metadata` a broker takes it for its own.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.side_files.partition_metadata import read_topic_id
from tests.support.broker.kafka_server import KafkaServer

TOPIC = "copies"
# As in the fixtures' topics.
INDEX_INTERVAL_BYTES = 1024
_TOPIC_ID_FILE = "partition.metadata"
_COMPLAINT = re.compile(
    r"truncat|corrupt|discard|invalid|overflow|stray|delet\w+ (unflushed |log )?segment",
    re.IGNORECASE,
)
_LEADER = re.compile(
    rf"Leader {TOPIC}-(\d+) with topic id .* starts at leader epoch (\d+) from offset (\d+)"
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster's directories; nothing runs there."""

    work_dir: Path

    @property
    def log_dir(self) -> Path:
        return self.work_dir / "log"

    def copy(self, work_dir: Path) -> Cluster:
        """The same cluster elsewhere."""
        return Cluster(Path(shutil.copytree(self.work_dir, work_dir)))

    def directory(self, partition: int) -> Path:
        return self.log_dir / f"{TOPIC}-{partition}"

    def topic_id(self) -> str:
        return read_topic_id((self.directory(0) / _TOPIC_ID_FILE).read_text())

    def fill(self, partition: int, source: Path) -> None:
        """Let the partition hold the files of `source` and nothing else."""
        directory = self.directory(partition)
        for path in directory.iterdir():
            if path.name != _TOPIC_ID_FILE:
                path.unlink()
        for path in source.iterdir():
            if path.name != _TOPIC_ID_FILE:
                shutil.copyfile(path, directory / path.name)


def prepared_cluster(
    work_dir: Path, partitions: int, configs: Mapping[str, str] | None = None
) -> Cluster:
    """A new cluster that has created the topic, with further `configs`, and was stopped."""
    with KafkaServer(work_dir) as server:
        interval = {"index.interval.bytes": f"{INDEX_INTERVAL_BYTES}"}
        server.create_topic(TOPIC, partitions, {**interval, **(configs or {})})
    return Cluster(work_dir)


def lines_about(log_text: str, partition: int) -> list[str]:
    """What the broker said of a partition."""
    named = re.compile(rf"\b{TOPIC}-{partition}\b")
    return [line for line in log_text.splitlines() if named.search(line)]


def complaints(lines: list[str]) -> list[str]:
    """Those of a broker's lines that are warnings, or speak of something cut or removed."""
    return [
        line
        for line in lines
        if line.startswith(("WARN", "ERROR", "FATAL")) or _COMPLAINT.search(line)
    ]


def leader_starts(log_text: str) -> dict[int, tuple[int, int]]:
    """For each partition the epoch and the offset at which the broker became its leader."""
    return {
        int(partition): (int(epoch), int(offset))
        for partition, epoch, offset in _LEADER.findall(log_text)
    }
