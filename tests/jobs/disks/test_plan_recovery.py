"""The recovery job on all damaged copies of a log at once, against what a broker did to them."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.plan_recovery import main
from kafkalog.spark.jobs.job import ExitCode
from tests.support.golden.damaged_log_dirs import broker_actions, one_log_dir
from tests.support.golden.startup_cases import STARTED_AT, startup_cases
from tests.support.jobs.job_runs import table, written_schema
from tests.support.repository import EXAMPLES, Unpack

ARGUMENTS = ["--format", "parquet", "--index-interval-bytes", "1024"]


@pytest.fixture(scope="module")
def said(unpacked: Unpack) -> dict[str, dict[str, Any]]:
    return broker_actions(unpacked("unclean.golden"))


def test_the_table_says_what_a_broker_did_to_each_copy(
    spark: SparkSession,
    said: dict[str, dict[str, Any]],
    unpacked: Unpack,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # F113 to F124; T3, T4.
    log_dir = one_log_dir(unpacked("unclean.logs") / "variants", said, tmp_path / "logs")
    output = tmp_path / "tables"
    code = main([str(log_dir), "--output-dir", str(output), *ARGUMENTS, "--fail-on-findings"])
    assert code == ExitCode.FINDINGS
    plan = table(spark, output, "recovery_plan")
    assert plan.schema == written_schema("recovery_plan")
    rows = {row.topic: row for row in plan.collect()}
    assert rows.keys() == said.keys()
    ends = {name: rows[name].log_end_offset for name in rows}
    assert ends == {name: told.get("consume", {}).get("latest") for name, told in said.items()}
    starts = {name: rows[name].broker_starts for name in rows}
    assert starts == {name: told["broker_started"] for name, told in said.items()}
    for name, told in said.items():
        if told["broker_started"] and rows[name].cut_file:
            left = told["files_after_recovery_running"]
            assert rows[name].cut_position == left[Path(rows[name].cut_file).name], name
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("NO START: 1 partition of 37 ")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("variant", "kind", "lost", "salvageable"),
    [
        # By hand: bytes behind the cut, and those of the sound batches among them.
        ("truncated-last-batch", "truncated", 296, 0),
        ("zeroed-tail-appended", "zeros", 36843, 0),
        ("zero-hole", "zeros", 18500 - 7979, 18500 - 15954),
        ("garbage-block-inserted", "garbage", 777 + 18500 - 7979, 18500 - 7979),
        ("bitflip-payload-active", "checksum", 18500 - 7979, 18500 - 15954),
    ],
)
def test_truncation_and_nonsense_are_told_apart_from_sound_data_after_them(
    variant: str, kind: str, lost: int, salvageable: int, spark: SparkSession, unpacked: Unpack
) -> None:
    log_dir = unpacked("unclean.logs") / "variants" / variant / "log-dirs"
    reader = spark.read.format("kafkalog").option("view", "recovery_plan")
    (row,) = (
        reader.option("columns", "cut_kind,lost_bytes,salvageable_bytes")
        .load(str(log_dir))
        .collect()
    )
    assert tuple(row) == (kind, lost, salvageable)


@pytest.mark.deep
def test_a_cleanly_stopped_broker_loses_nothing(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = EXAMPLES / "kafka-4.4"
    arguments = [str(log_dir), "--output-dir", str(tmp_path), *ARGUMENTS, "--shutdown", "clean"]
    assert main([*arguments, "--fail-on-findings"]) == ExitCode.DONE
    assert "the logs lose nothing" in capsys.readouterr().out
    sequences = table(spark, tmp_path, "producer_sequences")
    assert sequences.schema == written_schema("producer_sequences")
    assert sequences.count() == 0


def test_a_partition_in_two_directories_keeps_a_node_from_starting(
    unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F969, as a broker of 4.4.0 did with fixture 04a: the command's answer is the job's.
    folder = startup_cases(unpacked)["04a-double"].made_in(tmp_path / "node")
    given = [str(folder / "d1"), str(folder / "d2"), "--format", "parquet"]
    given += ["--server-properties", str(folder / "server.properties"), "--as-of", STARTED_AT]
    main([*given, "--output-dir", str(tmp_path / "tables")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Node 1 does NOT start with Kafka 4.4, for 1 reason:"
    assert f"{folder}/d2/orders-0 is of the same partition" in lines[1]
