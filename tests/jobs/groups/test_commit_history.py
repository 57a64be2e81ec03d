"""Job commit-history; the rules are in tests/golden/groups/test_commit_history.py."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.commit_history import main
from kafkalog.command_line.main import kafkalog
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import table, written_schema
from tests.support.repository import Unpack


def test_the_job_writes_the_rows_of_the_command(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = str(unpacked("positions44.logs") / "log-dirs")
    place = tmp_path / "tables"
    given = [log_dir, "--group", "lost", "--output-dir", str(place), "--format", "parquet"]
    assert main(given) == ExitCode.DONE
    again = [*given[:3], "--output-dir", str(tmp_path / "again"), "--fail-on-findings"]
    assert main([*again, "--format", "parquet"]) == ExitCode.FINDINGS
    assert "190 messages lost between" in capsys.readouterr().out
    found = table(spark, place, "commit_history")
    assert found.schema == written_schema("commit_history")
    by_command = ["groups", log_dir, "--history", "lost", "--output-dir", str(tmp_path / "command")]
    assert CliRunner().invoke(kafkalog, by_command).exit_code == 0
    wanted = table(spark, tmp_path / "command", "commit_history").where("event <> 'end'").collect()
    assert sorted(found.where("event <> 'end'").collect()) == sorted(wanted)
    assert len(wanted) == 8


def test_without_groups_it_is_about_all(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    log_dir = str(unpacked("positions44.logs") / "log-dirs")
    place = tmp_path / "tables"
    assert main([log_dir, "--output-dir", str(place), "--format", "parquet"]) == ExitCode.DONE
    groups = {row.group_id for row in table(spark, place, "commit_history").collect()}
    assert {"lost", "two", "behind", "skips", "dropped", "of-gone"} <= groups
