"""Job group-resume; the rules are in tests/golden/groups and tests/broker/offsets."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.group_resume import main
from kafkalog.command_line.main import kafkalog
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import table, written_schema
from tests.support.repository import Unpack


def test_the_job_writes_the_rows_of_the_command(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = str(unpacked("positions44.logs") / "log-dirs")
    reset = ["--auto-offset-reset", "earliest"]
    given = [log_dir, *reset, "--format", "parquet", "--output-dir"]
    assert main([*given, str(tmp_path / "job"), "--fail-on-findings"]) == ExitCode.FINDINGS
    assert "behind in orders-0, led by broker 1: what the commit" in capsys.readouterr().out
    assert CliRunner().invoke(
        kafkalog, ["groups", "--resume", *given, str(tmp_path / "command")]
    ).exit_code in (ExitCode.DONE, ExitCode.FINDINGS)
    found, wanted = (table(spark, tmp_path / each, "group_resume") for each in ("job", "command"))
    assert found.schema == wanted.schema == written_schema("group_resume")
    rows = sorted(map(str, found.collect()))
    assert rows == sorted(map(str, wanted.collect()))
    assert len(rows) > 10
