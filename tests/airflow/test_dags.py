"""The DAGs of examples/airflow in a real Airflow: `make airflow-test`."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from kafkalog.testing import LogDirectory, ProducerRecord
from tests.airflow.airflow_server import AIRFLOW
from tests.airflow.cluster import HOURS, Cluster, rows, running_cluster
from tests.support.repository import delta_jars

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

DAYS = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")


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
    with running_cluster(folder, variables) as cluster:
        yield cluster


def test_every_dag_is_read_and_has_a_page_parameters_and_an_asset(cluster: Cluster) -> None:
    airflow = cluster.airflow
    assert airflow.ask("GET", "/api/v2/importErrors")["import_errors"] == []
    known = sorted(dag["dag_id"] for dag in airflow.ask("GET", "/api/v2/dags")["dags"])
    details = {dag: airflow.ask("GET", f"/api/v2/dags/{dag}/details") for dag in known}
    assert {dag: sorted(each["params"]) for dag, each in details.items()} == {
        "kafkalog_checksums": ["paths"],
        "kafkalog_iceberg": ["topics"],
        "kafkalog_ingest": ["topics"],
        "kafkalog_lag_history": ["every", "groups", "topics"],
        "kafkalog_maintenance": ["tables"],
        "kafkalog_state": ["topics"],
    }
    assert [dag for dag in known if "**If it fails:**" not in details[dag]["doc_md"]] == []
    assets = airflow.ask("GET", "/api/v2/assets")["assets"]
    assert {
        (asset["name"], producer["dag_id"])
        for asset in assets
        for producer in asset["producing_tasks"]
    } == {
        ("kafkalog_checksums", "kafkalog_checksums"),
        ("kafkalog_iceberg", "kafkalog_iceberg"),
        ("kafkalog_ingested_records", "kafkalog_ingest"),
        ("kafkalog_lag_history", "kafkalog_lag_history"),
        ("kafkalog_state", "kafkalog_state"),
    }


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
    folder = cluster.output / "state" / "2026-01-01"
    assert rows(folder / "state", ["key", "value"]) == [(b"ada", b"1"), (b"bob", b"1")]
    # A DAG that this asset schedules finds the tables by it.
    (event,) = airflow.ask("GET", f"/api/v2/assets/events?source_dag_id={dag}")["asset_events"]
    assert event["extra"]["folder"] == str(folder)


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
    cluster.point_at_cleaned()
    airflow.unpause(dag)
    # At the first second only offset 0 was there, which the cleaner has taken.
    run = airflow.trigger(dag, HOURS[0], "2026-01-01T00:00:01Z")
    assert airflow.ended(dag, run) == "failed"
    assert airflow.tasks(dag, run) == {"reconstruct_state": ("failed", 1)}
    assert "exit code 1: findings" in airflow.log(dag, run, "reconstruct_state")
    cluster.point_at("/nowhere/kafka-logs", "lake-of-nowhere")
    run = airflow.trigger(dag, "2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z")
    airflow.task_reaches(dag, run, "reconstruct_state", "up_for_retry")
    assert "Error code is: 3" in airflow.log(dag, run, "reconstruct_state")
