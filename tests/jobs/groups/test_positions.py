"""Positions of queries and tables of real Spark, and job positions; the command's tests have the
rules."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.ingest_topics import main as ingest
from jobs.positions import main
from kafkalog.command_line.main import kafkalog
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.support.jobs.job_runs import needs_delta, table, written_schema

_LONGEST_S = 60


@pytest.fixture
def made(tmp_path: Path) -> LogDirectory:
    logs = LogDirectory(tmp_path / "logs")
    logs.topic("orders").records([ProducerRecord(str(number), b"b") for number in range(9)])
    return logs


def positions(*paths: object) -> list[dict[str, Any]]:
    given = ["positions", *map(str, paths), "--format", "json", "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def streamed(spark: SparkSession, log_dir: str, place: Path, table_format: str) -> None:
    frame = spark.readStream.format("kafkalog").option("startingOffsets", "earliest").load(log_dir)
    writer = frame.writeStream.format(table_format).option("path", str(place / "rows"))
    writer = writer.option("checkpointLocation", str(place / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(_LONGEST_S)


@needs_delta
def test_a_delta_table_has_what_its_query_has_committed(
    spark: SparkSession, tmp_path: Path, made: LogDirectory
) -> None:
    # F1240 and F1241: kafkalog's own source has the form of Spark's for Kafka.
    log_dir = made.write()
    streamed(spark, log_dir, tmp_path, "delta")
    found = positions(tmp_path / "rows", tmp_path / "checkpoint", log_dir)
    assert [row["keeper"] for row in found] == ["delta", "spark"]
    assert {row["name"] for row in found} == {found[0]["name"]}
    assert [row["batch"] for row in found] == [0, 0]
    assert [row["next_offset"] for row in found] == [9, 9]
    assert {row["status"] for row in found} == {"at_end"}
    # Alone the table knows no offsets.
    given = ["positions", str(tmp_path / "rows"), log_dir, "--processes", "1"]
    result = CliRunner().invoke(kafkalog, given)
    assert result.exit_code == 3
    assert "whose checkpoint is not among the paths" in result.stderr


@needs_delta
def test_a_table_of_ingest_topics(spark: SparkSession, tmp_path: Path, made: LogDirectory) -> None:
    log_dir = made.write()
    assert ingest([log_dir, "--output-dir", str(tmp_path / "lake")]) == ExitCode.DONE
    (row,) = positions(tmp_path / "lake" / "ingested_records", log_dir)
    assert (row["keeper"], row["next_offset"], row["status"]) == ("delta", 9, "at_end")
    assert row["topic_id"] == row["log_topic_id"]


def test_the_job_writes_the_table(
    spark: SparkSession, tmp_path: Path, made: LogDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = made.write()
    streamed(spark, log_dir, tmp_path, "parquet")
    given = [str(tmp_path / "checkpoint"), log_dir, "--output-dir", str(tmp_path / "tables")]
    assert main([*given, "--format", "parquet"]) == ExitCode.DONE
    assert "1 position: 1 at_end" in capsys.readouterr().out
    found = table(spark, tmp_path / "tables", "kept_positions")
    assert found.schema == written_schema("kept_positions")
    assert [(row.keeper, row.next_offset) for row in found.collect()] == [("spark", 9)]
