"""A real broker serves what `kafkalog undelete` has brought back."""

import json
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalog.command_line.main import kafkalog
from kafkalog.format.side_files.partition_metadata import write_topic_id
from tests.support.broker.consumed_rows import row_of
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.prepared_cluster import (
    INDEX_INTERVAL_BYTES,
    TOPIC,
    Cluster,
    complaints,
    lines_about,
    prepared_cluster,
)
from tests.support.logs.damageable_logs import SampleLog, log_name
from tests.support.logs.log_dirs import UNIQUE
from tests.support.repository import Unpack

pytestmark = pytest.mark.deep

_KEPT_FOREVER = {"retention.ms": "-1"}


def _log() -> SampleLog:
    log = SampleLog(time.time_ns() // 1_000_000)
    for segment in range(3):
        if segment:
            log.roll()
        for _ in range(5):
            log.add(5)
    return log


def _fill(cluster: Cluster, scratch: Path) -> dict[int, SampleLog]:
    """A log in each of the two partitions; the records of each, by its number."""
    logs = {}
    for partition in range(2):
        logs[partition] = _log()
        logs[partition].write(scratch / f"made-{partition}", INDEX_INTERVAL_BYTES)
        cluster.fill(partition, scratch / f"made-{partition}")
    return logs


def _undelete(source: Path, target: Path, *more: str) -> None:
    arguments = ["undelete", str(source), "--topic", TOPIC, "--to", str(target), *more]
    assert CliRunner().invoke(kafkalog, arguments).exit_code == 0


def test_a_broker_opens_the_new_directory_and_serves_every_record(tmp_path: Path) -> None:
    # F197: a directory that was set aside, and segments that retention has dropped.
    cluster = prepared_cluster(tmp_path / "kafka", 2, _KEPT_FOREVER)
    logs = _fill(cluster, tmp_path)
    cluster.directory(0).rename(cluster.log_dir / f"{TOPIC}-0.{UNIQUE}-stray")
    for kind in (".log", ".index", ".timeindex"):
        path = cluster.directory(1) / log_name(0, kind)
        path.rename(f"{path}.deleted")
    target = tmp_path / "undeleted"
    _undelete(cluster.log_dir, target)
    with KafkaServer(cluster.work_dir, target) as server:
        received = server.consume_all(TOPIC)
        text = server.log_text()
    expected = [
        row_of(partition, record)
        for partition, log in logs.items()
        for batch in log.batches
        for record in batch.records
    ]
    assert sorted(received, key=lambda row: (row.partition, row.offset)) == expected
    assert [complaints(lines_about(text, partition)) for partition in logs] == [[], []]


def test_a_deleted_topic_lives_on_in_one_that_was_made_again(tmp_path: Path) -> None:
    # docs/undelete.md, step by step: the directories of a topic with another id.
    cluster = prepared_cluster(tmp_path / "kafka", 2, _KEPT_FOREVER)
    logs = _fill(cluster, tmp_path)
    source = tmp_path / "deleted"
    source.mkdir()
    for partition in logs:
        marked = cluster.directory(partition).rename(
            source / f"{TOPIC}-{partition}.{UNIQUE}-delete"
        )
        (marked / "partition.metadata").write_text(write_topic_id("A" * 21 + "Q"))
    (tmp_path / "empty").mkdir()
    with KafkaServer(cluster.work_dir):
        pass  # the topic's partitions are there anew, and empty
    new_id = cluster.topic_id()
    _undelete(source, tmp_path / "undeleted", "--new-topic-id", new_id)
    for partition in logs:
        cluster.directory(partition).rename(tmp_path / "empty" / f"was-{partition}")
        (tmp_path / "undeleted" / f"{TOPIC}-{partition}").rename(cluster.directory(partition))
    with KafkaServer(cluster.work_dir) as server:
        received = server.consume_all(TOPIC)
    assert len(received) == sum(log.next_offset for log in logs.values())
    assert {row.partition for row in received} == {0, 1}


def test_a_broker_serves_what_the_cleaner_had_replaced(unpacked: Unpack, tmp_path: Path) -> None:
    # F197: of set restore44; where a segment is cut the broker makes its indexes.
    node = unpacked("restore44.logs") / "snapshots" / "node1" / "data"
    cluster = prepared_cluster(tmp_path / "kafka", 1, _KEPT_FOREVER)
    shutil.copytree(node / "state-0", tmp_path / "source" / f"{TOPIC}-0")
    _undelete(tmp_path / "source", tmp_path / "target", "--new-topic-id", cluster.topic_id())
    shutil.rmtree(cluster.directory(0))
    (tmp_path / "target" / f"{TOPIC}-0").rename(cluster.directory(0))
    with KafkaServer(cluster.work_dir) as server:
        received = server.consume_all(TOPIC)
        text = server.log_text()
    assert complaints(lines_about(text, 0)) == []
    ledger = (unpacked("restore44.golden") / "ledgers" / "state.jsonl").read_text()
    written = {
        (deed["offset"], deed["key"].encode())
        for deed in map(json.loads, ledger.splitlines())
        if deed["partition"] == 0
    }
    found = {(row.offset, row.key) for row in received}
    # The segments in use have 76.
    assert len(received) == len(found) > 250
    assert found <= written
