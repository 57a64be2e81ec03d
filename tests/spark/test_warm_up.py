"""What other threads load while the first steps of a job run."""

import threading
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from kafkalog.spark.warm_up import warm_up
from tests.support.jobs.job_runs import needs_delta


@needs_delta
def test_a_worker_runs_and_a_table_is_committed_to_while_the_block_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    jobs = spark.sparkContext.statusTracker()
    before = len(jobs.getJobIdsForGroup())
    with warm_up(spark, tmp_path, with_delta=True):
        pass
    assert len(jobs.getJobIdsForGroup()) > before
    table = DeltaTable.forPath(spark, str(tmp_path / "warm-up"))
    assert [row.version for row in table.history().collect()] == [0]


def test_the_block_has_its_error_and_what_fails_beside_it_is_silent(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "warm-up").write_bytes(b"no directory")
    threads = threading.active_count()
    with pytest.raises(KeyError), warm_up(spark, tmp_path, with_delta=True):
        raise KeyError
    assert threading.active_count() == threads
    assert "warm-up" not in "".join(capfd.readouterr())


def test_a_session_without_delta_makes_no_table(spark: SparkSession, tmp_path: Path) -> None:
    with warm_up(spark, tmp_path, with_delta=False):
        pass
    assert not list(tmp_path.iterdir())
