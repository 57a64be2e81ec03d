"""The job that compares two copies of log directories; the command's tests have the rules."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.diff import main
from kafkalog.spark.jobs.job import ExitCode
from kafkalog.testing import LogDirectory
from tests.support.jobs.job_runs import table, written_schema


def test_the_table_has_what_came_and_what_does_not_continue(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F1150, F1151
    live = LogDirectory(tmp_path / "live")
    orders, users = live.topic("orders"), live.topic("users")
    orders.records([("a", "1")])
    users.records([("a", "1")])
    live.commit_offsets("billing", {("orders", 0): 1})
    before = shutil.copytree(live.write(), tmp_path / "before")
    orders.records([("b", "2"), ("c", "3")])
    live.commit_offsets("billing", {("orders", 0): 3})
    after = Path(live.write())
    (after / "users-0" / f"{0:020d}.log").write_bytes(b"")
    arguments = ["--before", str(before), "--output-dir", str(tmp_path / "tables")]
    code = main([str(after), *arguments, "--format", "parquet", "--fail-on-findings"])
    assert code == ExitCode.FINDINGS
    said = capsys.readouterr().out
    assert "commits of 1 group moved, came or went (billing)" in said
    found = table(spark, tmp_path / "tables", "log_changes")
    assert found.schema == written_schema("log_changes")
    rows = {row.topic: row for row in found.collect()}
    assert (rows["orders"].change, rows["orders"].records_added) == ("grown", 2)
    assert (rows["users"].change, rows["users"].continues_until) == ("truncated", 0)
