"""The DAGs of examples/airflow in a real Airflow: `make airflow-test`."""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession

from kafkalog.resources import resource
from kafkalog.testing import LogDirectory, ProducerRecord
from tests.airflow.airflow_server import AIRFLOW, Airflow, running_airflow
from tests.support.repository import ROOT, delta_jars

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.deep,
    pytest.mark.spark,
    # A run is a JVM, and there are a dozen.
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not (AIRFLOW / "airflow").exists(), reason="Airflow is installed by `make airflow-test`"
    ),
]

HOUR_MS = 60 * 60 * 1000
HOURS = [f"2026-01-01T{hour:02}:00:00Z" for hour in range(4)]
DAYS = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")


@dataclass(slots=True)
class Cluster:
    """What the DAGs read and where they write, as the Airflow variable says it."""

    airflow: Airflow
    log_dir: LogDirectory
    output: Path
    package: Path

    def point_at(self, logs: str, lake: str = "lake") -> None:
        """Tell the DAGs where the logs are, and in which folder to write."""
        self.output = self.output.with_name(lake)
        self.airflow.set_variable(
            "kafkalog",
            {
                "logs": logs,
                "output": str(self.output),
                "package": str(self.package),
                "state_topics": "users",
            },
        )


def made_log_dir(path: Path) -> LogDirectory:
    """Three hours: a record and a commit in each, but for the last commit; users that change."""
    log_dir = LogDirectory(path)
    orders, users = log_dir.topic("orders"), log_dir.topic("users")
    start_ms = log_dir.now_ms
    for hour in range(3):
        log_dir.now_ms = start_ms + hour * HOUR_MS + HOUR_MS // 2
        orders.records([("key", f"hour {hour}")])
        users.records([("ada", f"{hour}"), ("bob", f"{hour}" if hour < 2 else None)])
        if hour < 2:
            log_dir.commit_offsets("billing", {("orders", 0): hour + 1})
    return log_dir


def package_with_local_jars(folder: Path) -> Path:
    """Jobs and settings, with the jars that are there in place of those of Maven."""
    shutil.copytree(ROOT / "conf", folder / "conf")
    shutil.copytree(ROOT / "jobs", folder / "jobs")
    lines = resource("conf", "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    jars = ",".join(map(str, delta_jars()))
    others = [f"spark.jars {jars}", "spark.ui.enabled false", "spark.driver.host 127.0.0.1",
              "spark.driver.bindAddress 127.0.0.1"]  # fmt: skip
    kept = [line for line in lines if not line.startswith("spark.jars")]
    (folder / "conf" / "spark-defaults.conf").write_text("\n".join([*kept, *others]) + "\n")
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("airflow")
    spark_home = Path(pyspark.__path__[0])
    variables = {
        # As README.md says.
        "SPARK_HOME": str(spark_home),
        "PATH": str(spark_home / "bin"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }
    log_dir = made_log_dir(folder / "kafka-logs")
    package = package_with_local_jars(folder / "package")
    with running_airflow(folder / "home", variables) as airflow:
        made = Cluster(airflow, log_dir, folder / "lake", package)
        made.point_at(log_dir.write())
        yield made


def rows(folder: Path, columns: list[str]) -> list[tuple[Any, ...]]:
    """What stands in a table of parquet files, sorted."""
    table = pq.read_table(folder, columns=columns)
    return sorted(zip(*(table[name].to_pylist() for name in columns), strict=True))


def test_every_dag_is_read_without_an_error(cluster: Cluster) -> None:
    assert cluster.airflow.ask("GET", "/api/v2/importErrors")["import_errors"] == []
    known = cluster.airflow.ask("GET", "/api/v2/dags")["dags"]
    assert sorted(dag["dag_id"] for dag in known) == [
        "kafkalog_checksums",
        "kafkalog_ingest",
        "kafkalog_lag_history",
        "kafkalog_state",
    ]


def test_lag_is_reported_of_the_hours_of_a_backfill(cluster: Cluster) -> None:
    airflow, dag = cluster.airflow, "kafkalog_lag_history"
    airflow.unpause(dag)
    runs = airflow.backfill(dag, HOURS[0], HOURS[1], runs=2)
    assert [airflow.ended(dag, run) for run in runs] == ["success", "success"]
    folders = sorted(path.name for path in (cluster.output / "lag").iterdir())
    assert folders == ["20260101T000000", "20260101T010000"]
    told = rows(cluster.output / "lag" / folders[1] / "lag_history", ["group_id", "at_ms"])
    assert {group for group, _ in told} == {"billing"}


def test_the_state_is_that_of_the_intervals_end(cluster: Cluster) -> None:
    airflow, dag = cluster.airflow, "kafkalog_state"
    airflow.unpause(dag)
    run = airflow.trigger(dag, HOURS[1], HOURS[2])
    assert airflow.ended(dag, run) == "success"
    found = rows(cluster.output / "state" / "2026-01-01" / "state", ["key", "value"])
    assert found == [(b"ada", b"1"), (b"bob", b"1")]


@pytest.mark.skipif(not delta_jars(), reason="Delta's jars are not there: `make setup`")
def test_each_record_is_ingested_once_by_a_run_and_a_backfill(
    cluster: Cluster, spark: SparkSession
) -> None:
    airflow, dag = cluster.airflow, "kafkalog_ingest"
    airflow.unpause(dag)
    assert airflow.ended(dag, airflow.trigger(dag, HOURS[0], HOURS[2])) == "success"
    (run,) = airflow.backfill(dag, HOURS[1], HOURS[1], runs=1)
    assert airflow.ended(dag, run) == "success"
    assert "--from-time 2026-01-01T01:00:00" in airflow.log(dag, run, "ingest_topics")
    table = spark.read.format("delta").load(str(cluster.output / "ingest" / "ingested_records"))
    found = [tuple(row) for row in table.select("topic", "offset").collect()]
    assert sorted(found) == [
        *(("orders", offset) for offset in range(2)),
        *(("users", offset) for offset in range(4)),
    ]


def test_faults_fail_their_task_with_the_damaged_places(cluster: Cluster) -> None:
    airflow, dag = cluster.airflow, "kafkalog_checksums"
    airflow.unpause(dag)
    sound = airflow.trigger(dag, *DAYS)
    assert airflow.ended(dag, sound) == "success"
    damaged = LogDirectory(cluster.output.parent / "damaged")
    topic = damaged.topic("orders")
    topic.records([ProducerRecord("k", "v")])
    topic.flip_byte(0)
    cluster.point_at(damaged.write(), "lake-of-damaged")
    run = airflow.trigger(dag, "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")
    assert airflow.ended(dag, run) == "failed"
    tasks = airflow.tasks(dag, run)
    assert tasks == {"validate_checksums": ("success", 1), "no_faults": ("failed", 1)}
    said = airflow.log(dag, run, "no_faults")
    assert "orders-0/00000000000000000000.log: position 0: checksum" in said


def test_findings_are_not_tried_again_and_unreadable_input_is(cluster: Cluster) -> None:
    airflow, dag = cluster.airflow, "kafkalog_state"
    cleaned = LogDirectory(cluster.output.parent / "cleaned")
    users = cleaned.topic("users")
    users.records([("ada", "1"), ("ada", "2")])
    users.compact()
    users.records([("ada", "3")])
    cluster.point_at(cleaned.write(), "lake-of-cleaned")
    airflow.unpause(dag)
    # At the first second only offset 0 was there, which the cleaner has taken.
    run = airflow.trigger(dag, HOURS[0], "2026-01-01T00:00:01Z")
    assert airflow.ended(dag, run) == "failed"
    assert airflow.tasks(dag, run) == {"reconstruct_state": ("failed", 1)}
    assert "has findings" in airflow.log(dag, run, "reconstruct_state")
    cluster.point_at("/nowhere/kafka-logs", "lake-of-nowhere")
    run = airflow.trigger(dag, "2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z")
    airflow.task_reaches(dag, run, "reconstruct_state", "up_for_retry")
    assert "exit code 3" in airflow.log(dag, run, "reconstruct_state")
