"""A real broker on a cluster of copied disks, restored as of five moments before the first copy.
Records, transactions and groups are those of each moment: F1042 to F1056 of docs/restore.md."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from tests.support.broker.cluster.committed_offsets import committed
from tests.support.broker.cluster.restored_cluster import (
    MARGIN_MS,
    PARTITIONS,
    WAIT_SECONDS,
    check_transactions,
    commits_at,
    consumed,
    ends,
    ledger,
    places,
    restore,
)
from tests.support.broker.cluster.restored_node import RestoredNode
from tests.support.broker.java_tools import run_tool
from tests.support.golden.restored_copies import group_epochs

pytestmark = pytest.mark.deep

Unpacked = Callable[[str], Path]
Place = tuple[str, int]
MOMENTS = ("19:48:30", "19:48:34", "19:48:37", "19:48:40", "19:48:42.300")
# These exist at all moments, and their writers waited for all replicas.
TOPICS = ("events", "transfers", "derived")
# All records and commits are older than the broker keeps any, if nothing else is set.
SETTINGS = {"log.retention.ms": 60_000, "offsets.retention.minutes": 60}
# The broker looks once a second at the ages of segments.
LOOKS_SECONDS = int(os.environ.get("KAFKALOG_RETENTION_SECONDS", "10"))
GROUPS = {"g-classic": "classic", "g-cpp": "classic", "g-consumer": "consumer"}


def check_records(
    found: dict[tuple[str, int, int], Any], golden: Path, manifest: dict[str, Any]
) -> None:
    """What was acknowledged before the moment is there, what was written after it is not."""
    as_of_ms, checked = manifest["as_of_ms"], 0
    for topic in TOPICS:
        for row in ledger(golden, topic):
            place = topic, row["partition"], row["offset"]
            if row["ack"] * 1000 < as_of_ms - MARGIN_MS:
                assert found[place].decode() == row["value"]
                checked += 1
            if row["call"] * 1000 > as_of_ms + MARGIN_MS:
                assert place not in found
    assert checked > 1000


def first_read(node: RestoredNode, group: str, commits: dict[Place, int]) -> dict[Place, int]:
    """Join a group as its members did; the first offset that each partition gives."""
    settings: dict[str, Any] = {
        "bootstrap.servers": node.bootstrap,
        "group.id": group,
        "group.protocol": GROUPS[group],
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
    consumer = Consumer(settings)
    topics = sorted({topic for topic, _ in commits})
    consumer.subscribe(topics)
    left = {(place.topic, place.partition) for place in places(*topics)} & {*commits}
    found: dict[Place, int] = {}
    deadline = time.monotonic() + WAIT_SECONDS
    while left:
        assert time.monotonic() < deadline, (group, left)
        for record in consumer.consume(1000, 1.0):
            place: Any = record.topic(), record.partition()
            error = record.error()
            if error is None:
                found.setdefault(place, record.offset() or 0)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(place)
    consumer.commit(offsets=[TopicPartition(*place, at) for place, at in commits.items()])
    consumer.close()
    return found


def check_share_group(node: RestoredNode, manifest: dict[str, Any]) -> None:
    """F1056: a share group begins at most at the cut."""
    cuts = {(row["topic"], row["partition"]): row["cut_offset"] for row in manifest["partitions"]}
    tool = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
    given = ["--bootstrap-server", node.bootstrap, "--describe", "--group", "g-share"]
    said = run_tool(tool, given).stdout.decode()
    starts = re.findall(r"^g-share\s+events\s+(\d+)\s+(\d+)", said, re.MULTILINE)
    assert len(starts) == PARTITIONS["events"], said
    assert all(int(start) <= cuts["events", int(number)] for number, start in starts)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_broker_serves_what_was_there_and_keeps_it(
    moment: str, unpacked: Unpacked, tmp_path: Path
) -> None:
    """F1042 to F1056: and no generation of a group falls when its members come back (F1054)."""
    disks = sorted((unpacked("restore44.logs") / "snapshots").glob("*/data"))
    golden = unpacked("restore44.golden")
    as_of = f"2026-11-25T{moment}Z"
    manifest = restore([*map(str, disks)], tmp_path / "restored", as_of=as_of)
    commits = commits_at(golden, manifest)
    assert commits.keys() >= GROUPS.keys()
    begun = time.monotonic()
    with RestoredNode(tmp_path / "restored", tmp_path / "node", SETTINGS) as node:
        begins = ends(node, OffsetSpec.earliest(), *TOPICS)
        found = consumed(node, "read_uncommitted", *TOPICS)
        check_records(found, golden, manifest)
        check_transactions(node, golden, manifest)
        check_share_group(node, manifest)
        for group, offsets in commits.items():
            assert committed(node, group) == offsets
        for group in GROUPS:
            for place, offset in first_read(node, group, commits[group]).items():
                at = commits[group][place]
                assert offset == min(
                    own for *own_place, own in found if (*own_place,) == place and own >= at
                )
        time.sleep(max(0, LOOKS_SECONDS - (time.monotonic() - begun)))
        assert ends(node, OffsetSpec.earliest(), *TOPICS) == begins
        for group, offsets in commits.items():
            assert committed(node, group) == offsets
        assert node.warnings == []
        assert "due to log retention" not in node.said
        assert not list(node.data.glob("*-stray"))
    before, after = group_epochs([*disks]), group_epochs([node.data])
    assert after.keys() >= {*GROUPS, "g-share"}
    assert all(epoch > before[group] for group, epoch in after.items())
