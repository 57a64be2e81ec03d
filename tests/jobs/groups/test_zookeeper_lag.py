"""The lag of groups that commit to ZooKeeper is what Kafka's tools printed of them. Rules: F490 to
F495."""

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from jobs import consumer_lag, lag_history
from kafkalog.spark.jobs.job import ExitCode
from tests.support.golden.printed_commits import printed_commits
from tests.support.jobs.job_runs import table, written_schema
from tests.support.repository import Unpack

Place = tuple[str, str, int]


def checked(golden: Path, *, in_kafka: bool) -> dict[Place, tuple[int, int, int, str | None]]:
    """What ConsumerOffsetChecker printed: offset, end, lag and owner without its stream."""
    found = {}
    for path in golden.glob("tools/offset_checker_*.txt"):
        if path.stem.endswith("-kafka") is not in_kafka:
            continue
        for line in path.read_text().splitlines()[1:]:
            group, topic, partition, offset, end, lag, owner = line.split()
            consumer = None if owner == "none" else owner.rpartition("-")[0]
            place = (group, topic, int(partition))
            found[place] = (int(offset), int(end), int(lag), consumer)
    return found


def told(rows: list[Row]) -> dict[Place, tuple[int, int, int, str | None]]:
    return {
        (row.group_id, row.topic, row.partition): (
            row.committed_offset,
            row.high_watermark,
            row.lag,
            row.member_id,
        )
        for row in rows
    }


def inputs(unpacked: Unpack, name: str) -> tuple[str, ...]:
    zookeeper = unpacked(f"{name}.zookeeper") / "zookeeper-live"
    return (str(unpacked(f"{name}.logs") / "log-dirs"), "--zookeeper", str(zookeeper))


@pytest.fixture(scope="module")
def lag_of_0_10(
    spark: SparkSession, unpacked: Unpack, tmp_path_factory: pytest.TempPathFactory
) -> list[Row]:
    output = tmp_path_factory.mktemp("lag")
    given = [*inputs(unpacked, "kafka010"), "--output-dir", str(output), "--format", "parquet"]
    assert consumer_lag.main(given) == ExitCode.DONE
    found = table(spark, output, "consumer_lag")
    assert found.schema == written_schema("consumer_lag")
    return found.collect()


@pytest.mark.deep
def test_offset_end_lag_and_owner_are_what_the_offset_checker_printed(
    lag_of_0_10: list[Row], unpacked: Unpack
) -> None:
    golden = unpacked("kafka010.golden")
    in_zookeeper = [row for row in lag_of_0_10 if row.offset_storage == "zookeeper"]
    assert told(in_zookeeper) == checked(golden, in_kafka=False)
    assert {row.group_type for row in in_zookeeper} == {"zookeeper"}
    in_kafka = told([row for row in lag_of_0_10 if row.offset_storage == "kafka"])
    for place, expected in checked(golden, in_kafka=True).items():
        assert in_kafka[place] == expected


@pytest.mark.deep
def test_a_group_of_both_stores_has_rows_of_both(lag_of_0_10: list[Row]) -> None:
    dual = [row for row in lag_of_0_10 if row.group_id == "old.g-old-dual"]
    assert {row.offset_storage for row in dual} == {"kafka", "zookeeper"}
    assert len({(row.committed_offset, row.lag) for row in dual}) == 1
    in_zookeeper = [row for row in dual if row.offset_storage == "zookeeper"]
    assert {row.commit_status for row in in_zookeeper} == {"current"}
    # Commits of that time carry when they expire, which was a day after the fixture was made.
    assert {row.commit_status for row in dual} <= {"current", "expired"}


@pytest.mark.deep
def test_states_members_and_coordinators_are_those_of_the_znodes(lag_of_0_10: list[Row]) -> None:
    # F493, F495: broker 0 was the only one.
    states = {
        row.group_id: (row.group_state, row.member_count)
        for row in lag_of_0_10
        if row.offset_storage == "zookeeper"
    }
    assert states == {
        "old.g-old-zk": ("Stable", 2),
        "old.g-old-dual": ("Stable", 1),
        "old.g-old-filter": ("Stable", 1),
        "old.g-old-gone": ("Empty", 0),
    }
    assert {(row.offset_storage, row.coordinator_broker_id) for row in lag_of_0_10} == {
        ("zookeeper", None),
        ("kafka", 0),
    }
    assert len({row.cluster_id for row in lag_of_0_10}) == 1


@pytest.mark.deep
def test_the_transaction_logs_are_the_history(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F490; the oldest brokers kept no times in their logs: only the end is known.
    given = [*inputs(unpacked, "kafka08"), "--output-dir", str(tmp_path), "--format", "parquet"]
    assert lag_history.main(given) in (ExitCode.DONE, ExitCode.FINDINGS)
    found = table(spark, tmp_path, "lag_history")
    assert found.schema == written_schema("lag_history")
    commits = found.where("offset_storage = 'zookeeper' AND event = 'commit'").collect()
    zookeeper = unpacked("kafka08.zookeeper")
    assert {
        (row.record_offset, row.group_id, row.topic, row.partition, row.committed_offset)
        for row in commits
    } == printed_commits(zookeeper)
    ends = found.where(F.col("event") == "end").where("offset_storage = 'zookeeper'").collect()
    golden = checked(unpacked("kafka08.golden"), in_kafka=False)
    last = {place: (offset, end, lag) for place, (offset, end, lag, _) in golden.items()}
    assert {
        (row.group_id, row.topic, row.partition): (
            row.committed_offset,
            row.high_watermark,
            row.lag,
        )
        for row in ends
    } == last
    assert "commits in ZooKeeper: none has been removed with old logs" in capsys.readouterr().out


@pytest.mark.deep
def test_a_topic_that_is_younger_than_the_commit_is_another(lag_of_0_10: list[Row]) -> None:
    # F494: none here; tests/spark/groups/test_commit_status.py has one.
    statuses = {row.commit_status for row in lag_of_0_10 if row.offset_storage == "zookeeper"}
    assert statuses == {"current"}
