"""The checksum job again: rows of the same input are replaced, those of others stay."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import DAMAGED, DAMAGED_FAULTS, faults_of, needs_delta, run, table
from tests.support.logs.samples import batch
from tests.support.repository import Unpack
from tests.support.spark.kafka_logs import write_log


@needs_delta
@pytest.mark.deep
def test_a_second_run_replaces_the_rows_of_its_input_and_keeps_those_of_others(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path
) -> None:
    # An input's name is data: quotes and backslashes in it must not reach SQL.
    logs, other, output = tmp_path / "it's \\ damaged", tmp_path / "other", tmp_path / "tables"
    shutil.copytree(DAMAGED, logs)
    write_log(other, "orders-0", {0: [batch(0)[:-1] + b"?", batch(3)]})
    delta = "--format delta"

    def faulty() -> Counter[str]:
        rows = table(spark, output, "faults", "delta").collect()
        return Counter(row.input_path for row in rows)

    def segments() -> Counter[str]:
        rows = table(spark, output, "checksum_report", "delta").collect()
        return Counter(row.input_path for row in rows)

    assert run(logs, output=output, arguments=delta) == ExitCode.DONE
    assert run(other, output=output, arguments=delta) == ExitCode.DONE
    assert faulty() == {str(logs): 3, str(other): 1}
    assert segments() == {str(logs): 7, str(other): 1}

    # The sound file put back, and a segment gone by retention: their rows go, the others' stay.
    name = "e.w-0/00000000000000002663.log"
    sound = unpacked("unclean.logs") / "variants" / "as-killed" / "log-dirs" / name
    shutil.copyfile(sound, logs / name)
    (logs / "e.w-0/00000000000000000000.log").unlink()
    assert run(logs, output=output, arguments=delta) == ExitCode.DONE
    assert faulty() == {str(other): 1}
    assert segments() == {str(logs): 6, str(other): 1}


@pytest.mark.deep
def test_a_second_run_replaces_a_parquet_table(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        assert run(DAMAGED, output=tmp_path) == ExitCode.DONE
    assert faults_of(table(spark, tmp_path, "faults")) == DAMAGED_FAULTS


@pytest.mark.deep
def test_a_parquet_table_that_holds_another_inputs_rows_is_left_alone(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, output = tmp_path / "other", tmp_path / "tables"
    write_log(other, "orders-0", {0: [batch(0)]})
    assert run(DAMAGED, output=output) == ExitCode.DONE
    before = {path: path.read_bytes() for path in output.rglob("*.parquet")}
    capsys.readouterr()
    assert run(other, output=output) == ExitCode.UNREADABLE_INPUT
    (_, said) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: {output / 'checksum_report'} holds rows of {DAMAGED}: ")
    assert {path: path.read_bytes() for path in output.rglob("*.parquet")} == before
    assert faults_of(table(spark, output, "faults")) == DAMAGED_FAULTS


@pytest.mark.deep
@pytest.mark.parametrize(
    ("table_format", "name", "text"),
    [
        ("json", "notes.json", '{"a": 1}\n'),
        ("json", "notes.txt", "the only copy\n"),
        ("parquet", "notes.txt", "the only copy\n"),
    ],
)
def test_what_is_not_a_table_is_not_deleted_to_write_one(
    table_format: str,
    name: str,
    text: str,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "checksum_report" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    code = run(DAMAGED, output=tmp_path, arguments=f"--format {table_format}")
    assert code == ExitCode.UNREADABLE_INPUT
    (_, said) = capsys.readouterr().err.splitlines()
    place = tmp_path / "checksum_report"
    assert said.startswith(f"error: {place} exists and is not a table checksum_report in ")
    assert file.read_text() == text
