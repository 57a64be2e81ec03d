"""The checksum job on the terminal: what it says, and its exit codes."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.validate_checksums import main
from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import (
    DAMAGED,
    DAMAGED_BYTES,
    DAMAGED_FAULTS,
    faults_of,
    run,
    table,
)
from tests.support.repository import EXAMPLES, Unpack


def test_the_terminal_gets_the_faults_a_verdict_and_the_places_of_the_tables(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(DAMAGED, output=tmp_path) == ExitCode.DONE
    size = sum(path.stat().st_size for path in DAMAGED.rglob("*.log"))
    told = capsys.readouterr()
    announced = f"found 7 segments of 1 partition, {size:,} bytes"
    assert told.err.startswith(announced)
    lines = told.out.splitlines()
    verdict = (
        f"DAMAGED: 3 faults in 2 segments, {DAMAGED_BYTES:,} bytes faulty, 0 trailing; "
        f"checked 7 segments of 1 partition, {size:,} bytes, "
    )
    assert [line for line in lines if line.startswith("DAMAGED")] == [lines[-2]]
    assert lines[-2].startswith(verdict)
    assert lines[-1] == f"tables: {tmp_path / 'checksum_report'} {tmp_path / 'faults'}"
    shown = [line.split("|")[1:-1] for line in lines if "00000.log" in line or "2663.log" in line]
    assert [(int(row[1]), int(row[2]), row[4].strip()) for row in shown] == [
        (position, length, kind) for _, position, length, kind, _ in DAMAGED_FAULTS
    ]


@pytest.mark.deep
@pytest.mark.parametrize(("show", "rows"), [(0, 0), (2, 2)])
def test_show_says_how_many_faults_the_terminal_gets(
    show: int, rows: int, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(DAMAGED, output=tmp_path, arguments=f"--format parquet --show {show}")
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if ".log|" in line]) == rows


@pytest.mark.deep
def test_findings_are_exit_code_1_only_where_that_is_asked(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = "--format parquet --fail-on-findings"
    assert run(DAMAGED, output=tmp_path / "a", arguments=findings) == ExitCode.FINDINGS
    # The tables are there all the same.
    assert faults_of(table(spark, tmp_path / "a", "faults")) == DAMAGED_FAULTS
    sound = EXAMPLES / "kafka-0.10"
    assert run(sound, output=tmp_path / "b", arguments=findings) == ExitCode.DONE
    assert "\nsound: checked 3 segments of 2 partitions, " in "\n" + capsys.readouterr().out


@pytest.mark.deep
def test_what_a_stopped_broker_leaves_is_not_a_finding(
    spark: SparkSession, unpacked: Unpack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # F69: the file ends 296 bytes into the last batch, which lies at 15954.
    variant = unpacked("unclean.logs") / "variants" / "truncated-last-batch" / "log-dirs"
    code = run(variant, output=tmp_path, arguments="--format parquet --fail-on-findings")
    assert code == ExitCode.DONE
    (row,) = table(spark, tmp_path, "checksum_report").where("trailing_bytes > 0").collect()
    size = (variant / "e.w-0" / "00000000000000002663.log").stat().st_size
    assert (row.segment_base_offset, row.verdict, row.is_last_segment) == (2663, "remarks", True)
    assert (row.valid_bytes, row.trailing_bytes) == (15954, size - 15954)
    said = f"sound, {size - 15954} bytes unfinished: checked 7 segments of 1 partition, "
    out = capsys.readouterr().out
    assert said in out
    # A remark is shown too.
    (shown,) = [line for line in out.splitlines() if ".log|" in line]
    assert [int(each) for each in shown.split("|")[2:4]] == [15954, size - 15954]


@pytest.mark.deep
def test_failfast_writes_nothing_where_faults_are(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "tables"
    code = run(DAMAGED, output=output, arguments="--format parquet --mode FAILFAST")
    assert code == ExitCode.UNREADABLE_INPUT
    assert not output.exists()
    told = capsys.readouterr()
    assert told.err.splitlines()[-1].startswith("error: DAMAGED: 3 faults in 2 segments, ")
    assert told.err.splitlines()[-1].endswith("no table is written with --mode FAILFAST")
    assert told.out == f"missing: 1 partition that the checkpoints of {DAMAGED} name: e.z-0\n"


@pytest.mark.deep
def test_failfast_keeps_the_tables_of_an_earlier_run(spark: SparkSession, tmp_path: Path) -> None:
    assert run(DAMAGED, output=tmp_path) == ExitCode.DONE
    before = sorted(tmp_path.rglob("*"))
    run(DAMAGED, output=tmp_path, arguments="--format parquet --mode FAILFAST")
    assert sorted(tmp_path.rglob("*")) == before


def test_wrong_arguments_exit_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(DAMAGED, output=tmp_path, arguments="--format csv")
    assert code == ExitCode.WRONG_ARGUMENTS
    assert "--format: 'csv' is not one of" in capsys.readouterr().err


def test_help_says_what_the_job_does_and_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == ExitCode.DONE
    told = capsys.readouterr().out
    for said in (
        "Usage: jobs/validate_checksums.py",
        "Check every batch of every segment",
        "--output-dir DIR",
        "--format [delta|parquet|json]",
        "--mode [FAILFAST|PERMISSIVE|DROPMALFORMED]",
        "--fail-on-findings",
        "python jobs/validate_checksums.py /var/lib/kafka/data --output-dir /tmp/checked",
        "Exit codes: 0 done; 1 findings",
    ):
        assert said in told


@pytest.mark.deep
def test_inputs_are_only_read(spark: SparkSession, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(DAMAGED, logs)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in logs.rglob("*")}
    run(logs, output=tmp_path / "tables")
    after = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in logs.rglob("*")}
    assert after == before
