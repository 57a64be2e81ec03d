"""The salvage job: a new log directory, two tables, and what it refuses."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.salvage import main
from kafkalog.format.record_batch import BatchFields, write_batch
from kafkalog.format.side_files.checkpoints import read_offset_checkpoint
from kafkalog.format.side_files.properties import read_properties
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import DAMAGED, DAMAGED_BYTES, table, written_schema
from tests.support.logs.log_dirs import add_meta_properties
from tests.support.logs.samples import batch, record
from tests.support.repository import EXAMPLES, Unpack
from tests.support.spark.kafka_logs import write_log


def arguments(tmp_path: Path, *log_dirs: Path) -> list[str]:
    to = ["--to", str(tmp_path / "new"), "--output-dir", str(tmp_path / "tables")]
    return [*map(str, log_dirs), *to, "--format", "parquet"]


def test_a_damaged_log_dir_becomes_a_sound_one(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F180 to F184.
    code = main([*arguments(tmp_path, DAMAGED), "--fail-on-findings"])
    assert code == ExitCode.FINDINGS
    assert f"LOST: {DAMAGED_BYTES:,} bytes in 3 ranges" in capsys.readouterr().out
    salvaged = table(spark, tmp_path / "tables", "salvage")
    lost = table(spark, tmp_path / "tables", "lost_ranges")
    assert salvaged.schema == written_schema("salvage")
    assert lost.schema == written_schema("lost_ranges")
    (row,) = salvaged.collect()
    assert row.directory == str(tmp_path / "new" / "e.w-0")
    assert (row.lost_bytes, row.broker_starts) == (DAMAGED_BYTES, True)
    assert {each.kind for each in lost.collect()} == {"checksum", "zeros", "garbage"}

    def records(log_dir: Path) -> list[tuple[int, bytes]]:
        reader = spark.read.format("kafkalog").option("mode", "PERMISSIVE")
        rows = reader.option("columns", "offset,value").load(str(log_dir)).collect()
        return sorted((each.offset, bytes(each.value)) for each in rows)

    assert records(tmp_path / "new") == records(DAMAGED)


@pytest.mark.deep
def test_the_files_at_the_top_are_those_of_a_broker(spark: SparkSession, tmp_path: Path) -> None:
    # F184.
    source = EXAMPLES / "kafka-4.4"
    assert main(arguments(tmp_path, source)) == ExitCode.DONE
    new = tmp_path / "new"
    properties = [read_properties((each / "meta.properties").read_text()) for each in (source, new)]
    assert properties[0].values == properties[1].values
    ends = {
        (row.topic, row.partition): row.log_end_offset
        for row in table(spark, tmp_path / "tables", "salvage").collect()
    }
    for name in ("recovery-point", "replication"):
        text = (new / f"{name}-offset-checkpoint").read_text()
        assert read_offset_checkpoint(text) == ends
    starts = [
        read_offset_checkpoint((each / "log-start-offset-checkpoint").read_text())
        for each in (source, new)
    ]
    assert starts[1] == {key: offset for key, offset in starts[0].items() if key in ends}
    assert not (new / ".kafka_cleanshutdown").exists()


def test_nothing_is_written_where_something_is(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F180.
    (tmp_path / "new").mkdir()
    assert main(arguments(tmp_path, DAMAGED)) == ExitCode.UNREADABLE_INPUT
    assert "new directories only" in capsys.readouterr().err


def test_nothing_is_written_into_a_brokers_directory(
    unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "meta.properties").touch()
    assert main(arguments(tmp_path, DAMAGED)) == ExitCode.UNREADABLE_INPUT
    assert "nothing is written there" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.deep
def test_log_dirs_of_several_disks_are_salvaged_one_by_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dirs = (EXAMPLES / "kafka-4.4", DAMAGED)
    assert main(arguments(tmp_path, *log_dirs)) == ExitCode.UNREADABLE_INPUT
    assert "one log directory is salvaged at a time" in capsys.readouterr().err


@pytest.mark.deep
def test_tables_are_not_written_into_the_new_log_dir(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A broker takes each directory in its log directory for a partition, and would not start.
    given = arguments(tmp_path, DAMAGED)
    given[given.index("--output-dir") + 1] = str(tmp_path / "new" / "tables")
    assert main(given) == ExitCode.WRONG_ARGUMENTS
    said = f"--output-dir: '{tmp_path}/new/tables' is not valid, expected a directory outside of"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.deep
def test_tables_of_other_inputs_are_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, DAMAGED)) == ExitCode.DONE
    again = arguments(tmp_path, EXAMPLES / "kafka-0.10")
    again[again.index("--to") + 1] = str(tmp_path / "newer")
    assert main(again) == ExitCode.UNREADABLE_INPUT
    assert "give another --output-dir" in capsys.readouterr().err
    assert not (tmp_path / "newer").exists()


@pytest.mark.deep
def test_a_partition_without_a_topic_id_is_reported(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F109, F184: brokers before 2.8 keep none, and one can be lost.
    assert main(arguments(tmp_path, EXAMPLES / "kafka-0.10")) == ExitCode.DONE
    assert "2 partitions had no topic id" in capsys.readouterr().out
    rows = table(spark, tmp_path / "tables", "salvage").collect()
    assert [row.topic_id for row in rows] == [None, None]


@pytest.mark.deep
def test_topics_whose_policy_is_compact_are_compacted(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F252 to F254.
    source = tmp_path / "logs"
    add_meta_properties(source)
    for name in ("users-0", "users-1", "orders-0"):
        write_log(source, name, {0: [batch(0)], 3: [batch(3)]})
    configs = tmp_path / "topics.json"
    configs.write_text(json.dumps({"users": {"cleanup.policy": "compact,delete"}}))
    given = [*arguments(tmp_path, source), "--compact", "--topic-config", str(configs)]
    assert main(given) == ExitCode.DONE
    # Of six records with one key the last stays.
    saved = 2 * len(batch(0)) - len(write_batch([record(5, b"value" * 8)], BatchFields()))
    assert (
        f"; {2 * saved:,} bytes less after compaction of users; nothing" in capsys.readouterr().out
    )
    rows = table(spark, tmp_path / "tables", "salvage").orderBy("topic", "partition").collect()
    assert [(row.topic, row.compacted_bytes, row.cleaned_offset) for row in rows] == [
        ("orders", None, None),
        ("users", saved, 6),
        ("users", saved, 6),
    ]
    assert [row.log_end_offset for row in rows] == [6, 6, 6]
    checkpoint = (tmp_path / "new" / "cleaner-offset-checkpoint").read_text()
    assert read_offset_checkpoint(checkpoint) == {("users", 0): 6, ("users", 1): 6}
    assert sorted(path.name for path in (tmp_path / "new").iterdir() if path.is_dir()) == [
        "orders-0",
        "users-0",
        "users-1",
    ]


@pytest.mark.deep
def test_nothing_to_compact_is_reported_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*arguments(tmp_path, EXAMPLES / "kafka-0.10"), "--compact"]
    assert main(given) == ExitCode.WRONG_ARGUMENTS
    assert "--compact: no topic has a cleanup.policy with compact" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
