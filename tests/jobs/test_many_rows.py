"""Jobs on more segments and more rows than the driver plans and keeps."""

from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import DAMAGED, DAMAGED_FAULTS, faults_of, run, table
from tests.support.repository import EXAMPLES


def test_tables_are_the_same_where_there_is_much(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    assert run(DAMAGED, output=few) == ExitCode.DONE
    monkeypatch.setattr("kafkalog.spark.jobs.spark_views._FEW_SEGMENTS", 6)
    monkeypatch.setattr("kafkalog.spark.kept_rows._FEW_ROWS", 9)
    assert run(DAMAGED, output=many) == ExitCode.DONE
    assert faults_of(table(spark, many, "faults")) == DAMAGED_FAULTS
    for name, position in (("checksum_report", ()), ("faults", ("position",))):
        found = [
            table(spark, output, name).orderBy("file", *position).collect()
            for output in (few, many)
        ]
        assert found[0] == found[1]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("job", "tables", "code"),
    [
        ("plan_recovery", ("recovery_plan", "producer_sequences"), ExitCode.DONE),
        ("plan_retention", ("retention_plan",), ExitCode.DONE),
        ("verify_compaction", ("compaction_report", "compaction_findings"), ExitCode.DONE),
        # F940: the checkpoints of kafka-4.4 name logs of __transaction_state that it lacks.
        (
            "report_transactions",
            ("transaction_report", "stable_offsets"),
            ExitCode.UNREADABLE_INPUT,
        ),
    ],
)
def test_what_is_much_is_left_to_spark(
    job: str,
    tables: tuple[str, ...],
    code: ExitCode,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    arguments = [str(EXAMPLES / "kafka-4.4"), str(DAMAGED), "--format", "parquet"]
    said = []
    for output in (few, many):
        main = import_module(f"jobs.{job}").main
        assert main([*arguments, "--output-dir", str(output)]) == code
        said.append(capsys.readouterr().out.splitlines()[-2])
        monkeypatch.setattr("kafkalog.spark.jobs.spark_views._FEW_SEGMENTS", 0)
        monkeypatch.setattr("kafkalog.spark.kept_rows._FEW_ROWS", 0)
    assert said[0] == said[1]
    for name in tables:
        found = [
            sorted(map(str, table(spark, output, name).drop("at_ms", "duration_ms").collect()))
            for output in (few, many)
        ]
        assert found[0] == found[1]
