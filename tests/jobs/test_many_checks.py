"""The checksum job on more segments and more findings than the driver plans and keeps."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import DAMAGED, DAMAGED_FAULTS, faults_of, run, table


def test_tables_are_the_same_where_there_is_much(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    assert run(DAMAGED, output=few) == ExitCode.DONE
    monkeypatch.setattr("kafkalog.spark.jobs.planned_views._FEW_SEGMENTS", 6)
    monkeypatch.setattr("kafkalog.spark.tables._FEW_ROWS", 9)
    assert run(DAMAGED, output=many) == ExitCode.DONE
    assert faults_of(table(spark, many, "faults")) == DAMAGED_FAULTS
    for name, position in (("checksum_report", ()), ("faults", ("position",))):
        found = [
            table(spark, output, name).orderBy("file", *position).collect()
            for output in (few, many)
        ]
        assert found[0] == found[1]
