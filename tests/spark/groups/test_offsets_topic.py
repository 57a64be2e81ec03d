"""What the logs of `__consumer_offsets` say about themselves, through Spark. F323, F328, T41."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from py4j.java_gateway import JVMView
from pyspark.sql import SparkSession

from kafkalog.coordination.groups.commit_status import offsets_partition_of, partition_count
from kafkalog.coordination.groups.group_records import GroupKey
from kafkalog.inspection.groups.complete_from import complete_from
from kafkalog.questions.groups.cluster_facts import cluster_facts
from kafkalog.storage.log_dir.log_dir import find_partitions
from kafkalog.storage.names import CONSUMER_OFFSETS
from kafkalog.views.engine import LocalViews
from tests.support.golden.described_groups import printed_states
from tests.support.golden.fixture_sets import dumped_batches, unique_segments
from tests.support.spark.kafka_logs import kafkalog_read

NAMES = ["", "g", "g-1", "größe", "漢字", "\U0001d11e", "a\U0001f600b" * 9, "polygenelubricants"]
Unpacked = Callable[[str], Path]


def test_the_partition_is_that_of_javas_hash(spark: SparkSession) -> None:
    # F323, T41; Kafka takes the absolute value, and 0 for that of the least number.
    java = cast(JVMView, spark._jvm)
    expected = {name: abs(java.java.util.Objects.hashCode(name)) % 2**31 % 50 for name in NAMES}
    assert {name: offsets_partition_of(name, 50) for name in NAMES} == expected


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
    keys = {GroupKey(*row) for row in rows}
    counts = {cluster_id: partition_count(numbers) for cluster_id, numbers in there.items()}
    found = {key: offsets_partition_of(key.group_id, counts[key.cluster_id] or 0) for key in keys}
    assert found == {key: key.internal_partition for key in keys}
    assert len(found) > 3


def test_the_coordinator_is_the_leader_of_the_groups_partition(
    spark: SparkSession, unpacked: Unpacked
) -> None:
    # F323: as kafka-consumer-groups --state printed it; the broker has stopped since.
    log_dir = unpacked("kafka44.logs") / "log-dirs"
    views = LocalViews([str(log_dir)], find_partitions([str(log_dir)]), 1)
    led = {number: each for (_, number), each in cluster_facts(views, None).leaders.items()}
    commits = kafkalog_read(spark, log_dir, view="offset_commits")
    lies = commits.select("group_id", "internal_partition").distinct().collect()
    found = {row.group_id: led[row.internal_partition] for row in lies}
    told = printed_states(unpacked("kafka44.golden"))
    assert {group: found[group] for group in told if group in found} == {
        group: state.coordinator for group, state in told.items() if group in found
    }
    assert len(led) == 7


@pytest.mark.deep
def test_how_far_back_the_commits_of_real_brokers_reach(unpacked: Unpacked) -> None:
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
    logs_there = [log for log in find_partitions(log_dirs) if log.topic == CONSUMER_OFFSETS]
    assert {log.partition: complete_from(log)[:2] for log in logs_there} == {
        number: (checkpoints.get(number, 0), max(times[number]) if number in times else None)
        for number in range(6)
    }
