"""A real broker on what `kafkalog restore` makes of tiered storage: F1058, F1202 and F1203 of
docs/restore.md."""

import base64
import hashlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.support.broker.cluster.restored_cluster import WAIT_SECONDS, restored_directory
from tests.support.broker.cluster.restored_node import RestoredNode

pytestmark = pytest.mark.deep

Unpacked = Callable[[str], Path]
TOPICS = {"tier.tiered": 2, "tier.tiered.tx": 1}
# Longer than between two looks of retention.
RETENTION_SECONDS = 5
Row = tuple[int, int, str | None]


def received(unpacked: Unpacked, topic: str) -> set[Row]:
    """What a consumer of the old cluster got."""
    path = unpacked("tiered43.golden") / "consumer" / f"{topic}.read_uncommitted.jsonl"
    rows = map(json.loads, path.read_text().splitlines())
    return {(row["partition"], row["offset"], row["value"]) for row in rows}


def consumed(node: RestoredNode, topic: str) -> set[Row]:
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(TOPICS[topic])])
    left = set(range(TOPICS[topic]))
    rows: set[Row] = set()
    deadline = time.monotonic() + WAIT_SECONDS
    while left:
        assert time.monotonic() < deadline, left
        for record in consumer.consume(1000, 1.0):
            error = record.error()
            if error is None:
                value = record.value()
                text = None if value is None else base64.b64encode(value).decode()
                rows.add((record.partition() or 0, record.offset() or 0, text))
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(record.partition())
    consumer.close()
    return rows


def hashes(directory: Path) -> dict[Path, str]:
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("has_disk", [True, False])
def test_a_broker_serves_what_the_store_had(
    has_disk: bool, unpacked: Unpacked, tmp_path: Path
) -> None:
    """With the disk all records are served; with the metadata alone those of the objects. The store
    is what it was after retention has run."""
    disk = unpacked("tiered43.logs") / "log-dirs"
    store = unpacked("tiered43.tiered") / "kafka-tiered-storage"
    before = hashes(store)
    assert before
    if not has_disk:
        controller = tmp_path / "controller"
        shutil.copytree(disk / "__cluster_metadata-0", controller / "__cluster_metadata-0")
        shutil.copy(disk / "meta.properties", controller)
        disk = controller
    manifest = restored_directory([str(store), str(disk)], tmp_path / "restored")
    cuts = {(row["topic"], row["partition"]): row["cut_offset"] for row in manifest["partitions"]}
    with RestoredNode(tmp_path / "restored", tmp_path / "node") as node:
        for topic in TOPICS:
            expected = {row for row in received(unpacked, topic) if row[1] < cuts[topic, row[0]]}
            assert consumed(node, topic) == expected
            assert expected
            if has_disk:
                assert expected == received(unpacked, topic)
        errors: list[str] = []
        producer = Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})
        producer.produce(
            *("tier.tiered", "new"),
            on_delivery=lambda error, _: errors.append(str(error)) if error else None,
        )
        assert producer.flush(WAIT_SECONDS) == 0
        assert errors == []
        time.sleep(RETENTION_SECONDS)
        assert "due to log retention" not in node.said
        assert node.warnings == []
        assert not list(node.data.glob("*-stray"))
    assert hashes(store) == before
