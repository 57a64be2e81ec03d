"""Jobs on Spark's standalone cluster: shipped as by users, with workers that die and slow tasks."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from kafkalog.spark.jobs.job import ExitCode
from tests.support.jobs.job_runs import DAMAGED
from tests.support.repository import ROOT, Unpack
from tests.support.spark.kafka_logs import kafkalog_read
from tests.support.standalone_cluster import StandaloneCluster, children, descendants, ended, kill

_IS_ABLE = os.geteuid() == 0 and shutil.which("unshare") is not None
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.deep,
    pytest.mark.spark,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not _IS_ABLE, reason="a worker with a view of its own needs root"),
]
_SLOW_COPY = ROOT / "tests" / "cluster" / "slow_copy.py"
_EACH = {"spark.sql.execution.arrow.maxRecordsPerBatch": "100"}
_STARTED_SECONDS = 400


@pytest.fixture(scope="module")
def logs(unpacked: Unpack) -> Path:
    return unpacked("kafka44.logs") / "log-dirs"


def shipped(packed: Path) -> dict[str, Any]:
    """What docs/operations.md has users give: the packed environment."""
    archive = f"{packed / 'environment.tar.gz'}#environment"
    return {"options": ["--archives", archive], "python": "./environment/bin/python", "cwd": packed}


def zipped(packed: Path) -> dict[str, Any]:
    """The package alone, for workers with the libraries."""
    return {"options": ["--py-files", str(packed / "kafkalog.zip")]}


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """All rows in an order that does not depend on tasks; times as numbers."""
    table = frame.toArrow()
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(number, field.name, table[field.name].cast(pa.int64()))
    return sorted(table.to_pylist(), key=repr)


def copied(spark: SparkSession, target: Path) -> list[dict[str, Any]]:
    return rows_of(spark.read.parquet(str(target)))


def expected_copy(spark: SparkSession, logs: Path) -> list[dict[str, Any]]:
    return rows_of(kafkalog_read(spark, logs, subscribe="*", includeHeaders=True))


def wait_until(running: subprocess.Popen[str], condition: Callable[[], Any]) -> Any:
    """What the condition gives once it gives something, while a job runs."""
    deadline = time.monotonic() + _STARTED_SECONDS
    while time.monotonic() < deadline and running.poll() is None:
        if found := condition():
            return found
        time.sleep(0.05)
    raise TimeoutError("what the test waits for did not happen")


@pytest.mark.parametrize("ship", [shipped, zipped])
def test_rows_are_the_same_however_the_package_came(
    ship: Callable[[Path], dict[str, Any]],
    cluster: StandaloneCluster,
    packed: Path,
    logs: Path,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    done = cluster.submit(_SLOW_COPY, "parquet", str(logs), str(tmp_path / "copy"), **ship(packed))
    code, said, complained = ended(done)
    assert code == 0, complained[-4000:]
    places = said.split("package:")[1].split()
    mark = "environment/lib" if ship is shipped else "kafkalog.zip/kafkalog"
    assert places and all(mark in place for place in places)
    assert copied(spark, tmp_path / "copy") == expected_copy(spark, logs)


def workers_of(executor: int) -> list[int]:
    """The Python workers below an executor's daemon."""
    return [pid for daemon in children(executor) for pid in children(daemon)]


@pytest.mark.parametrize(
    ("job", "tables", "code"),
    [
        ("validate_checksums", ["checksum_report", "faults"], ExitCode.FINDINGS),
        ("consumer_lag", ["consumer_lag"], ExitCode.DONE),
    ],
)
def test_jobs_make_the_same_tables_as_on_one_machine(
    job: str,
    tables: Sequence[str],
    code: ExitCode,
    cluster: StandaloneCluster,
    packed: Path,
    logs: Path,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    inputs = [str(logs)]
    arguments = ["--format", "parquet"]
    if job == "validate_checksums":
        inputs, arguments = [str(DAMAGED)], [*arguments, "--fail-on-findings"]
    if job == "consumer_lag":
        arguments += ["--as-of", "2099-01-01T00:00:00Z"]
    script = ROOT / "jobs" / f"{job}.py"
    done = cluster.submit(
        script, *inputs, "--output-dir", str(tmp_path / "there"), *arguments, **shipped(packed)
    )
    found, said, complained = ended(done)
    assert found == code, said + complained[-4000:]
    module = __import__(f"jobs.{job}", fromlist=["main"])
    assert module.main([*inputs, "--output-dir", str(tmp_path / "here"), *arguments]) == code
    for table in tables:
        there, here = (
            rows_of(spark.read.parquet(str(tmp_path / place / table)))
            for place in ("there", "here")
        )
        assert there == here
        assert here


@pytest.mark.parametrize("dies", ["executor", "python"])
def test_rows_are_the_same_when_a_process_is_killed_in_the_middle(
    dies: str,
    cluster: StandaloneCluster,
    packed: Path,
    logs: Path,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    target = tmp_path / "copy"
    running = cluster.submit(
        *(_SLOW_COPY, "parquet", str(logs), str(target), "0.2"), settings=_EACH, **zipped(packed)
    )
    wait_until(running, lambda: list(target.glob("_temporary/**/*.parquet")))
    # One that is at work: the other may have begun late, and have none.
    executor = next(each for each in cluster.executors() if workers_of(each))
    victims = [executor, *descendants(executor)]
    if dies == "python":
        # The workers below the daemon, not the daemon: tasks fail, the executor stays.
        victims = workers_of(executor)
    assert victims and running.poll() is None
    kill(victims)
    code, _, complained = ended(running)
    assert code == 0, complained[-4000:]
    assert "Lost task" in complained
    assert copied(spark, target) == expected_copy(spark, logs)


def test_a_write_is_whole_with_slow_tasks_tried_twice_and_an_executor_killed(
    cluster: StandaloneCluster, packed: Path, logs: Path, spark: SparkSession, tmp_path: Path
) -> None:
    # F566, F569.
    target = tmp_path / "logs"
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
    }
    running = cluster.submit(
        *(_SLOW_COPY, "kafkalog", str(logs), str(target), "0.1"),
        settings={**_EACH, **speculation},
        **zipped(packed),
    )
    wait_until(running, lambda: target.exists() and list(target.glob("*-delete")))
    executor = cluster.executors()[0]
    assert running.poll() is None
    kill([executor, *descendants(executor)])
    code, _, complained = ended(running)
    assert code == 0, complained[-4000:]
    written = expected_copy(spark, target)
    assert written == expected_copy(spark, logs)
    assert {path.name for path in target.glob("*-delete")} == set()


def test_a_directory_that_one_executor_lacks_is_named_with_the_host(
    cluster: StandaloneCluster, packed: Path, logs: Path, hidden: Path, tmp_path: Path
) -> None:
    shutil.copytree(logs, hidden / "log-dirs")
    running = cluster.submit(
        *(_SLOW_COPY, "parquet", str(hidden / "log-dirs"), str(tmp_path / "copy"), "0.2"),
        # Tried again on the other worker, the task would read what is there.
        settings={**_EACH, "spark.task.maxFailures": "1"},
        **zipped(packed),
    )
    code, _, complained = ended(running)
    assert code != 0
    assert "no longer exists on" in complained
    assert os.uname().nodename in complained
