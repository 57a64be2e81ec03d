"""Jobs by Spark Connect: the package comes from the client."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.validate_checksums import main
from kafkalog.spark.jobs.job import ExitCode
from tests.cluster.connect_server import ConnectServer
from tests.support.free_ports import free_ports
from tests.support.jobs.job_runs import DAMAGED, DAMAGED_FAULTS, faults_of, table
from tests.support.repository import ROOT

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.deep,
    pytest.mark.spark,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        importlib.util.find_spec("grpc") is None, reason="pyspark[connect] is not installed"
    ),
]


@pytest.fixture(scope="module")
def server(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server whose Python has the libraries, but not kafkalog."""
    folder = tmp_path_factory.mktemp("connect")
    environment = folder / "environment"
    shutil.copytree(packed / "environment", environment, symlinks=True, copy_function=os.link)
    for package in environment.glob("lib/*/site-packages/*kafkalog"):
        shutil.rmtree(package)
    with ConnectServer(folder, free_ports(1)[0], environment / "bin" / "python") as found:
        yield found


def test_a_job_brings_its_package_to_the_server(
    server: ConnectServer, spark: SparkSession, tmp_path: Path
) -> None:
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))
    }
    script = str(ROOT / "jobs" / "validate_checksums.py")
    there, here = tmp_path / "there", tmp_path / "here"
    arguments = ["--format", "parquet", "--fail-on-findings"]
    done = subprocess.run(
        [sys.executable, script, str(DAMAGED), "--output-dir", str(there), *arguments],
        cwd=tmp_path,
        env={**environment, "SPARK_REMOTE": server.remote},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == ExitCode.FINDINGS, done.stderr[-4000:]
    assert done.stdout.splitlines()[-2].startswith("DAMAGED: 3 faults in 2 segments, 9,533 bytes")
    assert main([str(DAMAGED), "--output-dir", str(here), *arguments]) == ExitCode.FINDINGS
    assert faults_of(table(spark, there, "faults")) == DAMAGED_FAULTS
    reports = [
        table(spark, place, "checksum_report").orderBy("file").collect() for place in (there, here)
    ]
    assert reports[0] == reports[1]
