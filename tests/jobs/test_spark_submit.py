"""The checksum job as spark-submit runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark.jobs.job import ExitCode
from kafkalog.spark.session import default_settings
from tests.support.jobs.job_runs import (
    DAMAGED,
    DAMAGED_FAULTS,
    faults_of,
    needs_delta,
    table,
    written_schema,
)
from tests.support.repository import ROOT, delta_jars


# In the short pass a job in a process of its own is that of tests/packaging.
@pytest.mark.deep
@needs_delta
def test_spark_submit_runs_the_job(spark: SparkSession, tmp_path: Path) -> None:
    # Settings as in conf/spark-defaults.conf, with the jars that `make setup` has fetched in
    # place of asking Maven for them.
    settings = {
        **{key: value for key, value in default_settings().items() if "jars" not in key},
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    command = [
        str(Path(sys.executable).parent / "spark-submit"),
        "--master",
        "local[2]",
        "--jars",
        ",".join(map(str, delta_jars())),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        str(ROOT / "jobs" / "validate_checksums.py"),
        str(DAMAGED),
        "--output-dir",
        str(tmp_path / "tables"),
        "--fail-on-findings",
    ]
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYSPARK", "SPARK")) or key == "SPARK_SUBMIT_OPTS"
    }
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environment, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == ExitCode.FINDINGS, done.stderr[-4000:]
    assert os.listdir(tmp_path) == ["tables"]
    assert done.stdout.splitlines()[-2].startswith("DAMAGED: 3 faults in 2 segments, 9,533 bytes")
    assert faults_of(table(spark, tmp_path / "tables", "faults", "delta")) == DAMAGED_FAULTS
    report = table(spark, tmp_path / "tables", "checksum_report", "delta")
    assert report.schema == written_schema("checksum_report")
    assert report.count() == 7
