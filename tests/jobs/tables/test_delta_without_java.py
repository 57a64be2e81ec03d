"""Delta tables that a command commits without Java, and a job with it: each goes on in the other's
table, every record is there once, and both say the same of what the table holds."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.ingest_topics import main as ingest_topics
from jobs.validate_checksums import main as validate_checksums
from kafkalog.command_line.main import kafkalog
from tests.support.jobs.job_runs import needs_delta, table
from tests.support.repository import EXAMPLES

SHOP_WEEK = EXAMPLES.parent / "shop-week"
# By `kafka-get-offsets` of the broker that wrote the example: docs/command-line.md.
RECORDS = {"customers": 300, "orders": 3186}

pytestmark = needs_delta


def command(*arguments: object) -> str:
    result = CliRunner().invoke(kafkalog, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def by_command(output: Path, *arguments: object) -> None:
    command("export", SHOP_WEEK, "--output-dir", output, "--format", "delta", *arguments)


def by_job(output: Path, *arguments: object) -> None:
    given = [SHOP_WEEK, "--output-dir", output, "--show", "0", *arguments]
    assert ingest_topics([str(each) for each in given]) == 0


@pytest.mark.parametrize("partition_by", [(), ("--partition-by", "day")])
@pytest.mark.parametrize("first", [by_command, by_job])
def test_each_goes_on_in_the_table_of_the_other(
    spark: SparkSession, first: Callable[..., None], partition_by: tuple[str, ...], tmp_path: Path
) -> None:
    # F1140
    second = by_job if first is by_command else by_command
    first(tmp_path, "--topic", "orders", *partition_by)
    second(tmp_path, *partition_by)
    # Nothing is new for either.
    by_command(tmp_path)
    by_job(tmp_path)
    rows = table(spark, tmp_path, "ingested_records", "delta")
    counts = {row.topic: row["count"] for row in rows.groupBy("topic").count().collect()}
    assert counts == RECORDS
    assert rows.select("topic", "partition", "offset").distinct().count() == sum(RECORDS.values())
    runs = table(spark, tmp_path, "ingest_manifest", "delta").groupBy("ingest_run").sum("rows")
    assert {row.ingest_run: row["sum(rows)"] for row in runs.collect()} == {1: 3186, 2: 300}
    said = command("status", tmp_path / "ingested_records", SHOP_WEEK)
    assert "4 partitions: 4 complete" in said


def test_both_commit_the_same_actions(spark: SparkSession, tmp_path: Path) -> None:
    by_command(tmp_path / "command", "--partition-by", "topic")
    by_job(tmp_path / "job", "--partition-by", "topic")
    found = [added(tmp_path / name) for name in ("command", "job")]
    assert found[0] == found[1]
    assert {values["topic"] for values, *_ in found[0]} == set(RECORDS)


def added(output: Path) -> list[tuple[dict[str, str], dict[str, object], object]]:
    """Return of each file its partition, its statistics, and the positions of its commit."""
    log = sorted((output / "ingested_records" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in log[-1].read_text().splitlines()]
    (text,) = [each["commitInfo"]["userMetadata"] for each in actions if "commitInfo" in each]
    positions = {name: value for name, value in json.loads(text).items() if name != "token"}
    files = [each["add"] for each in actions if "add" in each]
    return sorted(
        ((each["partitionValues"], json.loads(each["stats"]), positions) for each in files), key=str
    )


def test_a_job_and_a_command_replace_each_other_s_rows_of_an_input_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    damaged = EXAMPLES / "damaged"
    given = ["--output-dir", tmp_path, "--format", "delta"]
    command("check", SHOP_WEEK, *given)
    assert validate_checksums([str(each) for each in (damaged, *given)]) == 0
    command("check", damaged, *given, "--no-fail-on-findings")
    assert validate_checksums([str(each) for each in (SHOP_WEEK, *given)]) == 0
    rows = table(spark, tmp_path, "checksum_report", "delta").collect()
    assert len({row.file for row in rows}) == len(rows)
    assert {row.input_path for row in rows} == {str(SHOP_WEEK), str(damaged)}
