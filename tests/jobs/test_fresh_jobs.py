"""A job in a process of its own, in an empty directory: what it leaves there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalog.exit_codes import ExitCode
from tests.conftest import ROOT, delta_jars
from tests.jobs.job_runs import needs_delta

pytestmark = pytest.mark.spark


def run_fresh(
    job: str, *arguments: str, work: Path, submit: str
) -> subprocess.CompletedProcess[str]:
    """A job as an operator starts it, `work` being the current directory."""
    environment = {
        **{name: value for name, value in os.environ.items() if "PYSPARK" not in name},
        "PYSPARK_SUBMIT_ARGS": f"{submit} --conf spark.ui.enabled=false pyspark-shell",
    }
    command = [sys.executable, str(ROOT / "jobs" / f"{job}.py"), *arguments]
    return subprocess.run(
        command, cwd=work, env=environment, capture_output=True, text=True, check=False
    )


@needs_delta
def test_a_job_leaves_nothing_but_its_tables_in_the_current_directory(tmp_path: Path) -> None:
    jars = ",".join(map(str, delta_jars()))
    shop = str(ROOT / "examples" / "shop-week")
    done = run_fresh(
        *("ingest_topics", shop, "--output", "lake/shop", "--subscribe", "customers"),
        work=tmp_path,
        submit=f"--jars {jars}",
    )
    assert done.returncode == ExitCode.DONE, done.stderr
    tables = tmp_path / "lake" / "shop"
    assert os.listdir(tmp_path) == ["lake"]
    assert sorted(os.listdir(tables)) == ["ingest_manifest", "ingested_records"]
    assert f"tables: {tables / 'ingested_records'} {tables / 'ingest_manifest'}" in done.stdout
