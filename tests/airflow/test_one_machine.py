"""The DAGs on one machine, where jobs run by the command and not by spark-submit."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.airflow_server import AIRFLOW, AirflowError
from tests.airflow.cluster import HOURS, Cluster, rows, running_cluster

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.deep,
    pytest.mark.spark,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not (AIRFLOW / "airflow").exists(), reason="Airflow is installed by `make airflow-test`"
    ),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    variables = {
        # As README.md says: no Spark on the PATH, no connection.
        "KAFKALOG_COMMAND": str(Path(sys.executable).with_name("kafkalog")),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with running_cluster(tmp_path_factory.mktemp("airflow"), variables) as cluster:
        yield cluster


def test_a_run_by_hand_is_of_the_chosen_topics(cluster: Cluster) -> None:
    airflow, dag = cluster.airflow, "kafkalog_state"
    airflow.unpause(dag)
    run = airflow.trigger(dag, HOURS[1], HOURS[2], topics=["orders"])
    assert airflow.ended(dag, run) == "success"
    found = rows(cluster.output / "state" / "2026-01-01" / "state", ["topic", "key", "value"])
    assert found == [("orders", b"key", b"hour 1")]
    assert "spark-submit" not in airflow.log(dag, run, "reconstruct_state")


def test_parameters_that_are_none_are_refused_before_the_run(cluster: Cluster) -> None:
    with pytest.raises(AirflowError, match="400"):
        cluster.airflow.trigger("kafkalog_lag_history", HOURS[0], HOURS[1], every="soon")


def test_findings_are_not_tried_again_and_unreadable_input_is(cluster: Cluster) -> None:
    airflow, dag = cluster.airflow, "kafkalog_state"
    cluster.point_at_cleaned()
    airflow.unpause(dag)
    run = airflow.trigger(dag, HOURS[0], "2026-01-01T00:00:01Z")
    assert airflow.ended(dag, run) == "failed"
    assert airflow.tasks(dag, run) == {"reconstruct_state": ("failed", 1)}
    assert "exit code 1: findings" in airflow.log(dag, run, "reconstruct_state")
    cluster.point_at("/nowhere/kafka-logs", "lake-of-nowhere")
    run = airflow.trigger(dag, "2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z")
    airflow.task_reaches(dag, run, "reconstruct_state", "up_for_retry")
    assert "exit code 3" in airflow.log(dag, run, "reconstruct_state")
