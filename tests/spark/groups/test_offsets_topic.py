"""What the logs of `__consumer_offsets` say about themselves, through Spark. F323, F328, T41."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.analysis.cluster_metadata import metadata_in_force, metadata_topics, partition_leaders
from kafkalog.analysis.lag.offsets_partitions import offsets_partition
from kafkalog.coordination.groups.group_records import GroupKey
from kafkalog.coordination.groups.offsets_partitions import offsets_partitions
from kafkalog.spark.log_rows import commits_complete_from
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS
from tests.support.golden.described_groups import printed_states
from tests.support.golden.fixture_sets import dumped_batches, unique_segments
from tests.support.messages.group_records import frame
from tests.support.spark.kafka_logs import kafkalog_read

NAMES = ["", "g", "g-1", "größe", "漢字", "\U0001d11e", "a\U0001f600b" * 9, "polygenelubricants"]
Unpacked = Callable[[str], Path]


def test_the_partition_is_that_of_javas_hash(spark: SparkSession) -> None:
    # F323, T41; Kafka takes the absolute value, and 0 for that of the least number.
    java = cast(JVMView, spark._jvm)
    expected = {name: abs(java.java.util.Objects.hashCode(name)) % 2**31 % 50 for name in NAMES}
    names = spark.createDataFrame([(name,) for name in NAMES], "name string")
    found = names.select("name", offsets_partition(F.col("name"), 50).alias("place")).collect()
    assert {row.name: row.place for row in found} == expected


@pytest.mark.deep
@pytest.mark.parametrize("name", ["kafka44", "kafka39zk", "kafka010"])
def test_every_group_lies_where_its_hash_says(
    spark: SparkSession, unpacked: Unpacked, name: str
) -> None:
    # F323: names with blanks and umlauts among them, and hashes with either sign.
    log_dirs = sorted(path.parent for path in unpacked(f"{name}.logs").rglob("meta.properties"))
    logs = find_partitions([str(path) for path in log_dirs])
    there: dict[str | None, list[int]] = {}
    for log in logs:
        if log.topic == CONSUMER_OFFSETS and log.partition is not None:
            there.setdefault(log.log_dir.cluster_id, []).append(log.partition)
    commits = kafkalog_read(spark, *log_dirs, view="offset_commits")
    rows = commits.select(*GroupKey._fields).distinct().collect()
    keys = [GroupKey(*row) for row in rows]
    found = offsets_partitions(keys, there)
    assert found == {key: key.internal_partition for key in keys}
    assert len(found) > 3


def test_the_coordinator_is_the_leader_of_the_groups_partition(
    spark: SparkSession, unpacked: Unpacked
) -> None:
    # F323: as kafka-consumer-groups --state printed it; the broker has stopped since.
    log_dir = unpacked("kafka44.logs") / "log-dirs"
    messages = kafkalog_read(spark, log_dir, view="messages", subscribe="__cluster_metadata")
    leaders = partition_leaders(metadata_in_force(messages)).where(
        F.col("topic") == CONSUMER_OFFSETS
    )
    led = {row.partition: row.leader for row in leaders.collect()}
    commits = kafkalog_read(spark, log_dir, view="offset_commits")
    lies = commits.select("group_id", "internal_partition").distinct().collect()
    found = {row.group_id: led[row.internal_partition] for row in lies}
    told = printed_states(unpacked("kafka44.golden"))
    assert {group: found[group] for group in told if group in found} == {
        group: state.coordinator for group, state in told.items() if group in found
    }
    assert len(led) == 7


def metadata_record(
    offset: int, name: str, value: str = "{}", **columns: object
) -> dict[str, object]:
    return {
        "cluster_id": "c",
        "input_path": "/logs",
        "topic": "__cluster_metadata",
        "offset": offset,
        "timestamp_ms": 1000 * offset,
        "record_name": name,
        "value": value,
        **columns,
    }


@pytest.mark.deep
def test_topics_and_leaders_by_metadata(spark: SparkSession) -> None:
    # F323, F195: what stands in an aborted transaction, or in one that has not ended, is nothing.
    def topic(name: str, topic_id: str) -> tuple[str, str]:
        return "TopicRecord", f'{{"name":"{name}","topicId":"{topic_id}"}}'

    def leader(kind: str, number: int, broker: int) -> tuple[str, str]:
        return kind, f'{{"topicId":"i","partitionId":{number},"leader":{broker}}}'

    records = [
        topic("t", "i"),
        leader("PartitionRecord", 0, 1),
        leader("PartitionChangeRecord", 0, 2),
        ("PartitionChangeRecord", '{"topicId":"i","partitionId":0,"isr":[2]}'),
        ("BeginTransactionRecord", "{}"),
        leader("PartitionChangeRecord", 0, 3),
        ("AbortTransactionRecord", "{}"),
        ("BeginTransactionRecord", "{}"),
        topic("u", "j"),
        ("EndTransactionRecord", "{}"),
        ("RemoveTopicRecord", '{"topicId":"j"}'),
        leader("PartitionChangeRecord", 0, -1),
        ("BeginTransactionRecord", "{}"),
        topic("v", "k"),
    ]
    messages = frame(
        spark, "messages", *(metadata_record(n, *record) for n, record in enumerate(records))
    )

    def topics(at_ms: int | None = None) -> list[tuple[str, str, bool]]:
        found = metadata_topics(metadata_in_force(messages, at_ms)).orderBy("topic").collect()
        return [(row.topic, row.topic_id, row.is_deleted) for row in found]

    def led(at_ms: int | None = None) -> list[tuple[str, int, int]]:
        found = partition_leaders(metadata_in_force(messages, at_ms)).collect()
        return [(row.topic, row.partition, row.leader) for row in found]

    assert topics() == [("t", "i", False), ("u", "j", True)]
    assert led() == [("t", 0, 2)]
    assert topics(9000) == [("t", "i", False), ("u", "j", False)]
    assert topics(8000) == [("t", "i", False)]
    assert led(1000) == [("t", 0, 1)]


@pytest.mark.deep
def test_how_far_back_the_commits_of_real_brokers_reach(
    spark: SparkSession, unpacked: Unpacked
) -> None:
    # F328: the broker cleaned two partitions up to its checkpoints; kafka-dump-log printed the
    # times of the batches before these.
    logs, golden = unpacked("kafka39zk.logs"), unpacked("kafka39zk.golden")
    checkpoints = {2: 65, 3: 38}
    times: dict[int, list[int]] = {}
    for segment in unique_segments(logs):
        if segment.topic == "__consumer_offsets":
            for printed in dumped_batches(golden, segment) or ():
                if int(printed["lastOffset"]) < checkpoints.get(segment.partition, 0):
                    times.setdefault(segment.partition, []).append(int(printed["CreateTime"]))
    log_dirs = sorted(str(path) for path in logs.glob("log-dirs/d*"))
    found = commits_complete_from(spark, find_partitions(log_dirs)).collect()
    assert {row.internal_partition: tuple(row)[3:5] for row in found} == {
        number: (checkpoints.get(number, 0), max(times[number]) if number in times else None)
        for number in range(6)
    }
    assert {row.broker_id for row in found} == {1}
