"""The job that moves offsets between ZooKeeper and Kafka, on data directories of real clusters.

What it has to say is what ConsumerOffsetChecker and the tools of that time printed of the groups.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.migrate_offsets import main
from kafkalog.coordination.groups.commit_status import offsets_partition_of
from kafkalog.messages.internal_records import read_internal_record
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.storage.log_dir.log_dir import find_partitions
from tests.support.jobs.job_runs import table, written_schema
from tests.support.logs.plain_reader import read_ranges, read_segment_records
from tests.support.repository import Unpack
from tests.support.zookeeper.checked_offsets import checked_offsets

Run = Callable[..., int]
CLUSTER_ID = "9HNcCqYpTZmkPoFfSKvi0A"
# The broker 0.10.2.2 did not write the id into its log directory yet.
VOUCHED = "--allow-unknown-cluster"
PARTITIONS = 3
OFFSETS = {"zk": 4, "filter": 4, "gone": 1, "dual": 1, "kafka": 1}


@pytest.fixture(scope="module")
def log_dir(unpacked: Unpack) -> Path:
    """The log directory of the broker 0.10.2.2."""
    (offsets,) = unpacked("kafka010.logs").rglob("__consumer_offsets-1")
    return offsets.parent


@pytest.fixture
def run(unpacked: Unpack, log_dir: Path, tmp_path: Path) -> Run:
    data_dir = unpacked("kafka010.zookeeper") / "zookeeper-live"

    def migrate(*arguments: object, logs: Path = log_dir, zookeeper: Path = data_dir) -> int:
        given = [
            "--zookeeper",
            zookeeper,
            "--output-dir",
            tmp_path / "tables",
            "--format",
            "parquet",
            # A hundred years: no offset of the copy is too old, whenever the tests run.
            "--offsets-retention",
            "52560000",
        ]
        return main([str(logs), *map(str, (*given, *arguments))])

    return migrate


def rows(spark: SparkSession, tmp_path: Path) -> dict[tuple[str, str, int], Any]:
    found = table(spark, tmp_path / "tables", "offset_migration")
    assert found.schema == written_schema("offset_migration")
    return {(row.group_id, row.topic, row.partition): row for row in found.collect()}


def phases(spark: SparkSession, tmp_path: Path) -> dict[str, Any]:
    found = table(spark, tmp_path / "tables", "migration_phases")
    assert found.schema == written_schema("migration_phases")
    return {row.group_id: row for row in found.collect()}


def by_comparison(found: dict[tuple[str, str, int], Any]) -> dict[str, set[str]]:
    """How the partitions of the old groups compare, by the ends of the groups' names."""
    compared: dict[str, set[str]] = {}
    for (group, _, _), row in found.items():
        if ".g-old-" in group:
            compared.setdefault(group.removeprefix("old.g-old-"), set()).add(row.comparison)
    return compared


def test_both_stores_are_what_the_tools_of_that_time_printed(
    spark: SparkSession,
    run: Run,
    unpacked: Unpack,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # F470, F471, F472, F475, F484
    assert run(VOUCHED, "--fail-on-findings") == ExitCode.FINDINGS
    found = rows(spark, tmp_path)
    told = checked_offsets(unpacked("kafka010.golden"))
    assert {
        key: row.kafka_offset if row.zookeeper_offset is None else row.zookeeper_offset
        for key, row in found.items()
        if key in told
    } == told
    assert by_comparison(found) == {
        "zk": {"only_zookeeper"},
        "filter": {"only_zookeeper"},
        "gone": {"only_zookeeper"},
        "dual": {"equal"},
        "kafka": {"only_kafka"},
    }
    by_group = phases(spark, tmp_path)
    assert {group: row.phase for group, row in by_group.items()} == {
        "old.g-old-zk": "zookeeper",
        "old.g-old-filter": "zookeeper",
        "old.g-old-gone": "zookeeper",
        "old.g-old-dual": "dual_commit",
        "old.g-old-kafka": "kafka",
        "old.g-new": "kafka",
        "old.g-new-active": "kafka",
    }
    assert all(row.is_safe for row in by_group.values())
    members = {group: (row.zookeeper_members, row.kafka_members) for group, row in by_group.items()}
    assert members["old.g-old-zk"] == (2, 0)
    assert members["old.g-old-gone"] == (0, 0)
    assert members["old.g-new-active"] == (0, 1)
    said = capsys.readouterr().out
    assert f"7 groups, {sum(OFFSETS.values()) + 3 + 4} partitions in " in said
    assert "phase dual_commit: 1 group, the next step is safe for 1" in said
    assert "to Kafka: 1 offset to move; refused: 8 of groups with members" in said
    assert "findings: 8 not moved to Kafka (of groups with members)" in said


@pytest.mark.deep
def test_clusters_whose_ids_are_not_known_or_differ_are_not_compared(
    run: Run, tmp_path: Path, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F485
    assert run() == ExitCode.WRONG_ARGUMENTS
    assert VOUCHED in capsys.readouterr().err
    other = tmp_path / "other"
    shutil.copytree(log_dir, other)
    (other / "meta.properties").write_text("version=0\nbroker.id=0\ncluster.id=elsewhere\n")
    assert run(VOUCHED, logs=other) == ExitCode.WRONG_ARGUMENTS
    assert f"cluster {CLUSTER_ID}" in capsys.readouterr().err


@pytest.mark.deep
def test_names_that_neither_store_has_are_reported(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--group", "old.g-old-zl", "--group", "old.g-old-zk", "--topic", "x")
    assert run(VOUCHED, *given) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "no rows of --group old.g-old-zl; in the input: did you mean old.g-old-zk" in said
    assert "no rows of --group old.g-old-zk: other options exclude it" in said
    assert "no rows of --topic x; in the input: old.codec-gzip, " in said


@pytest.mark.deep
def test_what_is_written_goes_on_where_the_logs_end(
    spark: SparkSession, run: Run, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F475, F477, F480 to F484
    copy, target, commands = tmp_path / "copy", tmp_path / "segments", tmp_path / "commands.txt"
    shutil.copytree(log_dir, copy)
    moving = [VOUCHED, "--allow-active-groups", "--group-pattern", "g-old"]
    writing = ["--write-segments", target, "--write-zookeeper-commands", commands]
    assert run(*moving, *writing, logs=copy) == ExitCode.DONE
    assert len(list(target.iterdir())) > 1
    # Byte 16 is the format of the first message: as the broker's own.
    assert {path.read_bytes()[16] for path in target.rglob("*.log")} == {1}
    said = capsys.readouterr().out
    assert "wrote 9 commits in " in said
    assert "wrote 1 offset as commands to" in said
    root = "/consumers/old.g-old-kafka/offsets"
    assert commands.read_text().splitlines() == [
        f'create {root} ""',
        f'create {root}/old.codec-snappy ""',
        f"create {root}/old.codec-snappy/0 88",
    ]
    shutil.copytree(target, copy, dirs_exist_ok=True)
    found = {key: row for key, row in rows(spark, tmp_path).items() if row.to_kafka == "move"}
    assert len(found) == 9
    assert read_commits(copy) == {
        key: (row.zookeeper_offset, row.zookeeper_mtime_ms) for key, row in found.items()
    }


@pytest.mark.deep
def test_groups_whose_partition_was_not_given_are_neither_compared_nor_moved(
    spark: SparkSession, run: Run, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F486: the only replica of their partition is on broker 0, by /brokers/topics.
    copy, target = tmp_path / "copy", tmp_path / "segments"
    shutil.copytree(log_dir, copy)
    lost = offsets_partition_of("old.g-old-zk", PARTITIONS)
    shutil.rmtree(copy / f"__consumer_offsets-{lost}")
    moving = [VOUCHED, "--allow-active-groups", "--group-pattern", "g-old"]
    # F940: the checkpoints name the partition, so its commits are missing.
    assert run(*moving, "--write-segments", target, logs=copy) == ExitCode.UNREADABLE_INPUT
    fault = f"__consumer_offsets-{lost} of broker 0 is missing"
    by_group = phases(spark, tmp_path)
    unknown = {group for group, row in by_group.items() if row.phase == "kafka_unknown"}
    assert unknown == {each for each in by_group if offsets_partition_of(each, PARTITIONS) == lost}
    assert "old.g-old-zk" in unknown
    assert {tuple(by_group[group].objections) for group in unknown} == {(fault,)}
    found = [row for row in rows(spark, tmp_path).values() if row.group_id in unknown]
    assert {(row.comparison, row.detail) for row in found} == {("kafka_unknown", fault)}
    assert {row.to_kafka for row in found} <= {"kafka_unknown", "absent"}
    written = {path.name for path in target.iterdir()}
    assert written
    assert f"__consumer_offsets-{lost}" not in written
    assert "__consumer_offsets of broker 0 is missing" in capsys.readouterr().out


@pytest.mark.deep
@pytest.mark.parametrize("told", [(), ("--broker-id", 0)])
def test_log_directories_without_meta_properties_belong_to_the_only_broker(
    told: tuple[object, ...], spark: SparkSession, run: Run, unpacked: Unpack, tmp_path: Path
) -> None:
    # F486: the broker 0.8.2.2 writes no meta.properties, and is the only one in /brokers/topics.
    logs = unpacked("kafka08.logs") / "log-dirs"
    zookeeper = unpacked("kafka08.zookeeper") / "zookeeper-live"
    assert not (logs / "meta.properties").exists()
    assert run(VOUCHED, *told, logs=logs, zookeeper=zookeeper) == ExitCode.DONE
    printed = checked_offsets(unpacked("kafka08.golden"))
    found = rows(spark, tmp_path)
    assert {key: row.zookeeper_offset for key, row in found.items() if key in printed} == {
        key: offset for key, offset in printed.items() if not key[0].endswith("-kafka")
    } | {key: None for key in printed if key[0].endswith("-kafka")}
    assert {
        key: row.kafka_offset for key, row in found.items() if key[0].endswith(("-kafka", "-dual"))
    } == {key: each for key, each in printed.items() if key[0].endswith(("-kafka", "-dual"))}


@pytest.mark.deep
def test_log_directories_without_meta_properties_are_of_the_broker_that_is_given(
    run: Run, unpacked: Unpack, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = unpacked("kafka08.logs") / "log-dirs"
    zookeeper = unpacked("kafka08.zookeeper") / "zookeeper-live"
    assert run(VOUCHED, "--broker-id", 7, logs=logs, zookeeper=zookeeper) == ExitCode.DONE
    assert "of broker 0 is missing: give all their log directories, and --broker-id for" in (
        capsys.readouterr().out
    )


def read_commits(log_dir: Path) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Offset and time of each commit in the segments of `__consumer_offsets` that begin behind
    offset 0."""
    found = {}
    for log in find_partitions([str(log_dir)]):
        for segment in log.segments[1:] if log.topic == "__consumer_offsets" else ():
            data = Path(segment.path).read_bytes()
            for record in read_segment_records(data, read_ranges(data, segment.base_offset or 0)):
                commit = read_internal_record("__consumer_offsets", record.key, record.value)
                key, value = commit.key or {}, commit.value or {}
                place = (key["group"], key["topic"], key["partition"])
                found[place] = (value["offset"], value["commitTimestamp"])
    return found
