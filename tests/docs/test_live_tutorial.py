"""The tutorial about a topic's history goes on with Spark's Kafka source, against what Kafka's
consumer received. Rule: F534."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.broker.class_paths import class_path
from tests.support.broker.kafka_server import KafkaServer
from tests.support.broker.marks import needs_kafka
from tests.support.broker.partition_files import demand_recovery
from tests.support.broker.producer_perf import produce
from tests.support.jobs.job_runs import needs_delta
from tests.support.repository import ROOT, SHOP, delta_jars

pytestmark = [*needs_kafka, needs_delta, pytest.mark.deep, pytest.mark.timeout(900)]

_TOPIC, _PARTITIONS, _NEW = "orders", 3, 500
_LIVE_S = 600


def test_the_history_of_the_tutorial_goes_on_with_the_live_cluster(tmp_path: Path) -> None:
    with KafkaServer(tmp_path / "kafka") as server:
        server.create_topic(_TOPIC, _PARTITIONS)
    # The cluster has the topic that the example is a copy of.
    for partition in range(_PARTITIONS):
        name = f"{_TOPIC}-{partition}"
        own = shutil.ignore_patterns("partition.metadata")
        shutil.copytree(SHOP / name, server.log_dir / name, ignore=own, dirs_exist_ok=True)
    demand_recovery(server.log_dir)
    with server:
        produce(server, _TOPIC, 100, _NEW, "zstd")
        _follow(server, tmp_path)
        received = server.consume_all(_TOPIC, "read_committed")
    rows = pq.read_table(tmp_path / "orders", columns=["partition", "offset", "key", "value"])
    assert len(received) == 3186 + _NEW
    assert sorted(tuple(row.values()) for row in rows.to_pylist()) == sorted(
        (row.partition, row.offset, row.key, row.value) for row in received
    )


def _follow(server: KafkaServer, scratch: Path) -> None:
    environment = {name: each for name, each in os.environ.items() if "SPARK" not in name}
    jars = [*map(str, delta_jars()), *class_path("spark_kafka").split(os.pathsep)]
    environment["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(jars)} pyspark-shell"
    command = [sys.executable, "-m", "tests.docs.live_reader", server.bootstrap, str(scratch)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, timeout=_LIVE_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
