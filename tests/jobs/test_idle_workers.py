"""Workers that Spark ends because they had nothing to do for a minute end without a word."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.logs.samples import batch
from tests.support.repository import ROOT
from tests.support.spark.kafka_logs import write_log
from tests.support.zookeeper.zookeeper_files import ROOT as ROOT_ZNODE
from tests.support.zookeeper.zookeeper_files import snapshot_bytes, write_data_dir

pytestmark = pytest.mark.deep

# What Spark does after a minute, at once: no setting shortens it.
PROGRAM = """
import sys, time
import kafkalog
from kafkalog.spark.session import job_session

def accessible(found):
    found.setAccessible(True)
    return found

def factories(spark):
    environment = spark._jvm.org.apache.spark.SparkEnv.get()
    workers = accessible(environment.getClass().getDeclaredField("pythonWorkers")).get(environment)
    found = workers.valuesIterator()
    while found.hasNext():
        yield found.next()

def close_idle_workers(factory):
    methods = factory.getClass().getDeclaredMethods()
    (method,) = (each for each in methods if each.getName().endswith("cleanupIdleWorkers"))
    accessible(method).invoke(factory, None)

with job_session("idle", with_delta=False) as spark:
    rows = kafkalog.read(spark, sys.argv[1]).where("offset > 0 AND topic = 'orders'")
    znodes = spark.read.format("zookeeper").load(sys.argv[2])
    print(rows.count(), znodes.count())
    found = list(factories(spark))
    for factory in found:
        close_idle_workers(factory)
    print(len(found))
    time.sleep(1)
"""


def test_no_traceback_is_written_when_idle_workers_are_ended(tmp_path: Path) -> None:
    write_log(tmp_path / "logs", "orders-0", {0: [batch(0)]})
    write_data_dir(tmp_path / "zookeeper", {0: snapshot_bytes([ROOT_ZNODE])})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "logs"), str(tmp_path / "zookeeper")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_SUBMIT_ARGS": "pyspark-shell"},
        capture_output=True,
        text=True,
        check=False,
    )
    counts, daemons = done.stdout.splitlines()
    assert (counts, done.returncode) == ("2 1", 0)
    # Those that look for sources, make one, plan, and read.
    assert int(daemons) >= 4
    assert "BrokenPipeError" not in done.stderr and "Traceback" not in done.stderr, done.stderr
