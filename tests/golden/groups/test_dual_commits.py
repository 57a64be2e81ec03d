"""What dual commit left in both stores of real clusters. Rule: docs/migration.md F478."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.messages.internal_records import InternalRecord, read_internal_record
from tests.support.logs.plain_reader import read_ranges, read_segment_records

Unpacked = Callable[[str], Path]
PREFIXES = {"kafka08": "o8", "kafka010": "old"}


def commits(logs: Path, group: str) -> list[InternalRecord]:
    """A group's commits in Kafka, in their order."""
    found = []
    for path in sorted(logs.rglob("__consumer_offsets-*/*.log")):
        data = path.read_bytes()
        for record in read_segment_records(data, read_ranges(data, 0)):
            message = read_internal_record("__consumer_offsets", record.key, record.value)
            if message.record_type in (0, 1) and (message.key or {}).get("group") == group:
                found.append(message)
    return found


def offsets_set(zookeeper: Path, path: str) -> list[int]:
    """The offsets that a znode was given, as ZooKeeper's LogFormatter prints them."""
    log_names = sorted((zookeeper / "golden" / "zk").glob("log.*"), key=lambda log: log.name)
    text = "".join(log.read_text() for log in log_names)
    line = re.compile(rf"zxid 0x([0-9a-f]+) (?:create|setData) '{re.escape(path)},#([0-9a-f]+)")
    found = sorted((int(zxid, 16), bytes.fromhex(data)) for zxid, data in line.findall(text))
    return [int(data) for _, data in found]


@pytest.mark.parametrize("name", PREFIXES)
def test_each_commit_went_to_kafka_and_then_to_zookeeper(unpacked: Unpacked, name: str) -> None:
    # F472, F478
    logs, zookeeper = unpacked(f"{name}.logs"), unpacked(f"{name}.zookeeper")
    group, topic = f"{PREFIXES[name]}.g-old-dual", f"{PREFIXES[name]}.codec-gzip"
    path = f"/consumers/{group}/offsets/{topic}/0"
    in_kafka = [message.value or {} for message in commits(logs, group)]
    assert [value["offset"] for value in in_kafka] == offsets_set(zookeeper, path)
    lines = (zookeeper / "golden" / "znodes.jsonl").read_text().splitlines()
    (znode,) = [each for each in map(json.loads, lines) if each["path"] == path]
    assert int(znode["text"]) == in_kafka[-1]["offset"]
    assert 0 <= znode["mtime"] - in_kafka[-1]["commitTimestamp"] < 1000
