"""A real broker loads the offsets that were moved to it from ZooKeeper, step by step as in
docs/migration.md.
"""

import re
import shutil
import time
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.migrate_offsets import main
from kafkalog.spark.jobs.job import ExitCode
from tests.support.broker.kafka_server import PRODUCED_NULL, KafkaServer
from tests.support.repository import Unpack

# In `make test-broker` and `make test-all`: it takes more than a minute.
pytestmark = [pytest.mark.spark, pytest.mark.deep]

# That of fixture kafka010, whose groups are moved.
CLUSTER_ID = "9HNcCqYpTZmkPoFfSKvi0A"
# That has all partitions of `__consumer_offsets`, by the fixture's znodes.
NODE_ID = 0
GONE, GONE_TOPIC, RECORDS = "old.g-old-gone", "old.codec-lz4", 100
# kafka-consumer-groups fails for a group with an offset for a topic that is not there.
TOPICS = {GONE_TOPIC: 1, "old.multi-3": 3, "old.codec-none": 1, "old.codec-gzip": 1}
# By ConsumerOffsetChecker.
MOVED = {
    ("old.g-old-zk", "old.codec-none", 0): 150,
    ("old.g-old-zk", "old.multi-3", 0): 0,
    ("old.g-old-zk", "old.multi-3", 1): 150,
    ("old.g-old-zk", "old.multi-3", 2): 150,
    ("old.g-old-dual", "old.codec-gzip", 0): 300,
}
_SETTINGS = {
    # As the fixture's znodes say.
    "offsets.topic.num.partitions": 3,
    # The fixture's offsets were committed when it was made.
    "offsets.retention.minutes": 2**31 - 1,
}
_LOADED = re.compile(r"Finished loading of metadata from (__consumer_offsets-\d+)")
_LOADING_SECONDS, _POLL_SECONDS = 60, 0.1
_GROUPS = "old.g-old-(zk|dual|gone)"


@dataclass(frozen=True)
class Migration:
    """What the job said of the stopped broker before and after its segments were put in place, and
    what kafka-consumer-groups printed between: offsets by group, topic and partition."""

    before: dict[tuple[str, str, int], Any]
    described: dict[tuple[str, str, int], int]
    after: dict[tuple[str, str, int], Any]
    log_text: str


@pytest.fixture(scope="module")
def migration(
    spark: SparkSession, unpacked: Unpack, tmp_path_factory: pytest.TempPathFactory
) -> Migration:
    work = tmp_path_factory.mktemp("migration")
    zookeeper = unpacked("kafka010.zookeeper") / "zookeeper-live"
    server = KafkaServer(work / "kafka", cluster_id=CLUSTER_ID, node_id=NODE_ID, settings=_SETTINGS)

    def run(step: str, *arguments: str) -> dict[tuple[str, str, int], Any]:
        given = [str(server.log_dir), "--zookeeper", str(zookeeper), "--group-pattern", _GROUPS]
        given += ["--output-dir", str(work / step), "--format", "parquet", "--show", "0"]
        assert main([*given, *arguments]) == ExitCode.DONE
        found = spark.read.parquet(str(work / step / "offset_migration")).collect()
        return {(row.group_id, row.topic, row.partition): row for row in found}

    with server:
        _commit_ahead(server)
    target = work / "segments"
    before = run("before", "--allow-active-groups", "--write-segments", str(target))
    shutil.copytree(target, server.log_dir, dirs_exist_ok=True)
    with server:
        described = _described(server)
        log_text = server.log_text()
    return Migration(before, described, run("after"), log_text)


def _commit_ahead(server: KafkaServer) -> None:
    """Let a group have an offset in Kafka that is ahead of the one in ZooKeeper; with the first
    commit the broker makes its offsets topic."""
    for topic, partitions in TOPICS.items():
        server.create_topic(topic, partitions)
    lines = f"{PRODUCED_NULL}\tkey\tvalue\n" * RECORDS
    server.produce_lines(GONE_TOPIC, lines.encode(), "none")
    reset = ["--reset-offsets", "--to-latest", "--execute", "--group", GONE, "--topic", GONE_TOPIC]
    server.run_client("consumer.group.ConsumerGroupCommand", reset)


def _described(server: KafkaServer) -> dict[tuple[str, str, int], int]:
    """What kafka-consumer-groups says once the broker has loaded all partitions of the topic:
    groups of the others are not there for it before."""
    deadline = time.monotonic() + _LOADING_SECONDS
    while len(set(_LOADED.findall(server.log_text()))) < _SETTINGS["offsets.topic.num.partitions"]:
        assert time.monotonic() < deadline, "the offsets topic was not loaded in time"
        time.sleep(_POLL_SECONDS)
    arguments = ["--describe", "--all-groups", "--offsets"]
    output = server.run_client("consumer.group.ConsumerGroupCommand", arguments)
    found = {}
    for line in output.stdout.decode().splitlines():
        words = line.split()
        if len(words) > 3 and words[2].isdecimal():
            group, topic, partition, offset, *_ = words
            found[group, topic, int(partition)] = int(offset)
    return found


def test_the_broker_tells_exactly_the_offsets_that_were_moved(migration: Migration) -> None:
    # F480 to F483
    moved = {key: row for key, row in migration.before.items() if row.to_kafka == "move"}
    assert {key: row.zookeeper_offset for key, row in moved.items()} == MOVED
    assert migration.described == {**MOVED, (GONE, GONE_TOPIC, 0): RECORDS}


def test_a_group_that_is_further_in_kafka_is_not_moved_back(migration: Migration) -> None:
    # F475
    row = migration.before[GONE, GONE_TOPIC, 0]
    assert (row.zookeeper_offset, row.kafka_offset, row.to_kafka) == (77, RECORDS, "rewind")


def test_afterwards_both_stores_are_equal(migration: Migration) -> None:
    # F470, F479: what was moved has the time of the znode.
    after = {key: row for key, row in migration.after.items() if key[0] != GONE}
    assert {row.comparison for row in after.values()} == {"equal"}
    assert {row.time_difference_ms for row in after.values()} == {0}
    assert {row.to_kafka for row in after.values()} == {"same"}
    assert {key: row.kafka_offset for key, row in after.items()} == MOVED


def test_the_broker_has_nothing_to_say_against_the_segments(migration: Migration) -> None:
    # F483
    lines = [line for line in migration.log_text.splitlines() if "__consumer_offsets-" in line]
    assert lines
    assert not [line for line in lines if line.startswith(("WARN", "ERROR", "FATAL"))]
