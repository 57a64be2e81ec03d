"""A Parquet or JSON table is there as a whole, or as it was before the job that did not end."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafkalog.errors import KafkaLogError
from kafkalog.exit_codes import INTERRUPTED
from kafkalog.spark import whole_tables
from kafkalog.spark.whole_tables import write_whole
from tests.support.jobs.job_runs import DAMAGED, DAMAGED_FAULTS, faults_of, run, table
from tests.support.jobs.killed_jobs import killed_at

pytestmark = pytest.mark.deep


@pytest.mark.parametrize("table_format", ["parquet", "json"])
def test_a_table_stays_where_the_next_cannot_be_written(
    table_format: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "numbers"
    write_whole(spark.range(7), str(path), table_format)
    # The last of many tasks fails when the others have written their files.
    failing = F.when(F.col("id") == 99, F.raise_error(F.lit("full"))).otherwise(F.col("id"))
    frame = spark.range(0, 100, 1, 8).select(failing.cast("long").alias("id"))
    with pytest.raises((PySparkException, Py4JJavaError), match="full"):
        write_whole(frame, str(path), table_format)
    assert spark.read.format(table_format).load(str(path)).count() == 7
    # Spark takes what it leaves for hidden.
    assert {each.name[0] for each in tmp_path.iterdir()} == {"n", "."}
    write_whole(spark.range(9), str(path), table_format)
    assert spark.read.format(table_format).load(str(path)).count() == 9
    assert os.listdir(tmp_path) == ["numbers"]


class _Stopped:
    """A file system that a job is stopped in, or that fails, when the new table gets its name."""

    def __init__(self, files: Any, ending: BaseException | None) -> None:
        self._files, self._ending = files, ending

    def rename(self, source: Any, target: Any) -> bool:
        if source.getName() != ".numbers.unfinished":
            return bool(self._files.rename(source, target))
        if self._ending is not None:
            raise self._ending
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


@pytest.mark.parametrize(
    ("ending", "raised"), [(KeyboardInterrupt(), KeyboardInterrupt), (None, KafkaLogError)]
)
def test_a_table_stays_where_the_next_cannot_take_its_place(
    ending: BaseException | None,
    raised: type[BaseException],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "numbers"
    write_whole(spark.range(7), str(path), "parquet")
    found = whole_tables._renaming_place

    def place(*given: Any) -> Any:
        placed = found(*given)
        assert placed is not None
        files, *paths = placed
        return (_Stopped(files, ending), *paths)

    with monkeypatch.context() as patch, pytest.raises(raised):
        patch.setattr(whole_tables, "_renaming_place", place)
        write_whole(spark.range(9), str(path), "parquet")
    assert spark.read.parquet(str(path)).count() == 7
    write_whole(spark.range(9), str(path), "parquet")
    assert spark.read.parquet(str(path)).count() == 9
    assert os.listdir(tmp_path) == ["numbers"]


def _report_begun(work: Path) -> Iterator[Path]:
    return (work / "tables").glob(".checksum_report.unfinished/_temporary")


def _faults_begun(work: Path) -> Iterator[Path]:
    return (work / "tables").glob(".faults.unfinished/_temporary")


MOMENTS = {"the first table is written": _report_begun, "the second is written": _faults_begun}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_job_leaves_no_half_table_and_the_next_run_goes_on(
    moment: str, spark: SparkSession, tmp_path: Path
) -> None:
    arguments = ["--format", "json"]
    code = killed_at(MOMENTS[moment], "validate_checksums", DAMAGED, tmp_path, arguments)
    assert code == -signal.SIGKILL, (tmp_path / "said").read_text()[-2000:]
    tables = tmp_path / "tables"
    is_first = moment == "the first table is written"
    assert not (tables / "faults").exists()
    assert (tables / "checksum_report").exists() is not is_first
    assert run(DAMAGED, output=tables, arguments="--format json") == 0
    assert sorted(os.listdir(tables)) == ["checksum_report", "faults"]
    assert faults_of(table(spark, tables, "faults", "json")) == DAMAGED_FAULTS


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_stopped_job_removes_what_it_half_wrote(
    number: signal.Signals, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    arguments = ["--format", "json"]
    given = ("validate_checksums", DAMAGED, tmp_path, arguments)
    assert killed_at(_report_begun, *given, number=number) == code
    said = (tmp_path / "said").read_text()
    assert "Traceback" not in said, said
    assert os.listdir(tmp_path / "tables") == []
    assert os.listdir(tmp_path / "tmp") == []
